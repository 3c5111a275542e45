"""Values that a column holds as JSON: reasons, and jobs as they were asked for."""

import json
from dataclasses import asdict, fields
from typing import Any

from ramherd.core.model import Brief, Job, Reason, Tree, Why

JOB_FIELDS = tuple(field.name for field in fields(Job))


def reason_json(reason: Reason) -> str:
    return json.dumps(reason.as_json())


def spec_json(job: Job) -> str:
    brief = asdict(job.brief) if job.brief is not None else None
    known = {name: getattr(job, name) for name in JOB_FIELDS}
    return json.dumps({**known, "env": dict(job.env), "brief": brief})


def job_from_spec(text: str) -> Job:
    """Keys that this ramherd does not know are another's."""
    spec = {name: value for name, value in json.loads(text).items() if name in JOB_FIELDS}
    lists = {name: tuple(value) for name, value in spec.items() if isinstance(value, list)}
    return Job(**{**spec, **lists, "brief": brief_from_spec(spec.get("brief"))})


def brief_from_spec(spec: dict[str, Any] | None) -> Brief | None:
    if spec is None:
        return None
    tree, args = spec["tree"], tuple(spec.get("args", ()))
    return Brief(**{**spec, "tree": Tree(**tree) if tree is not None else None, "args": args})


def reason_from_json(text: str) -> Reason:
    numbers = json.loads(text)
    return Reason(Why(numbers.pop("why")), **numbers)
