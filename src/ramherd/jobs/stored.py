"""A job as the store has it: JSON with the fields of `Job`, of its `Brief` and of its `Tree`.

Its variables, which may be secrets, are left out, and large fields are cut: for jobs of the service
both are in files (`store/inputs.py`).
"""

import json
from collections.abc import Mapping
from typing import Any

from ramherd.core.model import Brief, Job, Tree
from ramherd.core.record import replace
from ramherd.jobs.schema import BRIEF, BUILT_KEYS

JOB_FIELDS: tuple[str, ...] = Job.__match_args__
BRIEF_FIELDS: tuple[str, ...] = Brief.__match_args__
TREE_FIELDS: tuple[str, ...] = Tree.__match_args__
# A service has some hundred jobs in memory: this much of each field.
LARGE_BYTES = 16 << 10
SHOWN = 200
# The fields that may be large: of `Job`, and of its `Brief`.
WORD_FIELDS, TEXT_FIELDS = ("argv", "resume_argv", "args"), ("stdin", "prompt")


def large_fields(job: Job) -> dict[str, str | tuple[str, ...]]:
    """Fields that are too large for the store, by name."""
    brief = job.brief
    texts = {"stdin": job.stdin or "", "prompt": brief.prompt if brief is not None else ""}
    lists = {"argv": job.argv, "resume_argv": job.resume_argv}
    lists["args"] = brief.args if brief is not None else ()
    return {
        **{name: text for name, text in texts.items() if len(text) > LARGE_BYTES},
        **{name: words for name, words in lists.items() if sum(map(len, words)) > LARGE_BYTES},
    }


def shorten(job: Job) -> Job:
    """The job with large fields cut, as lists show it."""
    large = large_fields(job)
    if not large:
        return job
    short = {name: clip(value) for name, value in large.items()}
    of_brief = {name: value for name, value in short.items() if name in BRIEF_FIELDS}
    brief = replace(job.brief, **of_brief) if job.brief is not None else None
    of_job = {name: value for name, value in short.items() if name in JOB_FIELDS}
    return replace(job, **of_job, brief=brief, large=tuple(large))


def clip(value: str | tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return value if len(value) <= SHOWN else f"{value[:SHOWN]}..."
    return tuple(map(clip, value[:SHOWN]))


def job_to_json(job: Job) -> dict[str, Any]:
    job = shorten(job)
    brief = brief_to_json(job.brief) if job.brief is not None else None
    known = {name: getattr(job, name) for name in JOB_FIELDS if name != "env"}
    return {**known, "env_names": list(job.env), BRIEF: brief}


def brief_to_json(brief: Brief) -> dict[str, Any]:
    known = {name: getattr(brief, name) for name in BRIEF_FIELDS}
    tree = brief.tree
    return {**known, "tree": None if tree is None else to_dict(tree)}


def to_dict(tree: Tree) -> dict[str, Any]:
    return {name: getattr(tree, name) for name in TREE_FIELDS}


def job_from_json(stored: Mapping[str, Any]) -> Job:
    """Missing fields are an older ramherd's, unknown fields a newer one's."""
    return Job(**{**known_fields(stored, JOB_FIELDS), BRIEF: brief_from_json(stored.get(BRIEF))})


def brief_from_json(stored: Mapping[str, Any] | None) -> Brief | None:
    if stored is None:
        return None
    tree = stored.get("tree")
    known = known_fields(stored, BRIEF_FIELDS)
    made = None if tree is None else Tree(**known_fields(tree, TREE_FIELDS))
    return Brief(**{**known, "tree": made})


def known_fields(stored: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    known = {name: stored[name] for name in names if name in stored}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in known.items()}


def submitted_json(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The API's view of a submitted job: without its environment, which may hold secrets."""
    brief = stored.get(BRIEF) or {}
    shown = [key for key in BUILT_KEYS.values() if key.is_shown]
    of_brief = {key.field: brief.get(key.field) for key in shown if key.is_in_brief}
    of_job = {key.field: stored[key.field] for key in shown if key.field in stored}
    return {**of_job, **of_brief}


def job_to_text(job: Job) -> str:
    """The form in the store."""
    return json.dumps(job_to_json(job))


def job_from_text(text: str) -> Job:
    return job_from_json(json.loads(text))
