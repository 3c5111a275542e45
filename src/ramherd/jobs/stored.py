"""A job as the store has it: JSON with the fields of `Job`, of its `Brief` and of its `Tree`."""

import json
from collections.abc import Mapping
from typing import Any

from ramherd.core.model import Brief, Job, Tree
from ramherd.jobs.schema import BRIEF, BUILT_KEYS

JOB_FIELDS: tuple[str, ...] = Job.__match_args__
BRIEF_FIELDS: tuple[str, ...] = Brief.__match_args__


def job_to_json(job: Job) -> dict[str, Any]:
    brief = brief_to_json(job.brief) if job.brief is not None else None
    known = {name: getattr(job, name) for name in JOB_FIELDS}
    return {**known, "env": dict(job.env), BRIEF: brief}


def brief_to_json(brief: Brief) -> dict[str, Any]:
    known = {name: getattr(brief, name) for name in BRIEF_FIELDS}
    tree = brief.tree
    return {**known, "tree": None if tree is None else to_dict(tree)}


def to_dict(tree: Tree) -> dict[str, Any]:
    return {name: getattr(tree, name) for name in Tree.__match_args__}


def job_from_json(stored: Mapping[str, Any]) -> Job:
    """Fields that are missing are an older ramherd's, those that are not known a newer one's."""
    return Job(**{**known_fields(stored, JOB_FIELDS), BRIEF: brief_from_json(stored.get(BRIEF))})


def brief_from_json(stored: Mapping[str, Any] | None) -> Brief | None:
    if stored is None:
        return None
    tree = stored.get("tree")
    known = known_fields(stored, BRIEF_FIELDS)
    return Brief(**{**known, "tree": Tree(**tree) if tree is not None else None})


def known_fields(stored: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    known = {name: stored[name] for name in names if name in stored}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in known.items()}


def submitted_json(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What the API shows of a job as it was submitted: not its environment, which may hold
    secrets.
    """
    brief = stored.get(BRIEF) or {}
    shown = [key for key in BUILT_KEYS.values() if key.is_shown]
    of_brief = {key.field: brief.get(key.field) for key in shown if key.is_in_brief}
    of_job = {key.field: stored[key.field] for key in shown if key.field in stored}
    return {**of_job, **of_brief}


def job_to_text(job: Job) -> str:
    """As the store keeps it."""
    return json.dumps(job_to_json(job))


def job_from_text(text: str) -> Job:
    return job_from_json(json.loads(text))
