"""When the `on_done` command of a job is due, and its environment variables."""

from collections.abc import Mapping
from typing import Any

from ramherd.core.model import JobStatus
from ramherd.decide.resumption import INTERRUPTIONS


def is_on_done_due(status: JobStatus) -> bool:
    """True after the end of a job that ran. An interrupted job may resume, so it has not ended."""
    if not status.job.on_done or not status.state.is_final or not status.attempts:
        return False
    return status.reason.why not in INTERRUPTIONS


def describe_job_end(job: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a job's command; `job` is in the form that the API returns."""
    last: Mapping[str, Any] = job["runs"][-1] if job["runs"] else {}
    told = {
        "RAMHERD_JOB": job["id"], "RAMHERD_NAME": job["name"], "RAMHERD_HERD": job["herd"],
        "RAMHERD_STATE": job["state"], "RAMHERD_END": last.get("end"),
        "RAMHERD_EXIT_CODE": last.get("exit_code"), "RAMHERD_BRANCH": job.get("branch"),
        "RAMHERD_WORKTREE_DIR": job.get("worktree"),
    }  # fmt: skip
    return {name: "" if value is None else str(value) for name, value in told.items()}


def describe_herd_end(herd: Mapping[str, Any], exit_code: int) -> dict[str, str]:
    """The variables of a herd's command. Its state is `done` if all of its jobs are done."""
    counts = herd["counts"]
    is_done = set(counts) <= {"done"}
    return {
        "RAMHERD_HERD": herd["herd"],
        "RAMHERD_STATE": "done" if is_done else "failed",
        "RAMHERD_EXIT_CODE": str(exit_code),
    }
