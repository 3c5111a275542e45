"""Values that a column holds as JSON: reasons, and jobs as they were submitted."""

import json

from ramherd.core.model import Job, Reason, Why
from ramherd.jobs.stored import job_from_json, job_to_json


def reason_json(reason: Reason) -> str:
    return json.dumps(reason.as_json())


def spec_json(job: Job) -> str:
    return json.dumps(job_to_json(job))


def job_from_spec(text: str) -> Job:
    return job_from_json(json.loads(text))


def reason_from_json(text: str) -> Reason:
    numbers = json.loads(text)
    return Reason(Why(numbers.pop("why")), **numbers)
