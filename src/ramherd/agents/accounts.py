"""The API account of a job, as a hash: limits are counted for each account.

`Agent.account_env` has the variables that select it. Neither a key nor a path is stored: only
whether two jobs have the same account.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from ramherd.agents import find_agent
from ramherd.core.model import Job
from ramherd.core.record import replace

# 48 bits: two accounts of one user do not collide.
HASH_LENGTH = 12
# Selects the configuration, if no variable names a directory.
HOME = "HOME"


def with_accounts(jobs: Sequence[Job], inherited: Mapping[str, str]) -> list[Job]:
    """The jobs with their accounts; `inherited` has the variables that their runs inherit."""
    known: dict[tuple[str, ...], str] = {}
    return [with_account(job, inherited, known) for job in jobs]


def with_account(
    job: Job, inherited: Mapping[str, str], known: dict[tuple[str, ...], str]
) -> Job:  # fmt: skip
    if job.brief is None:
        return job
    names = (HOME, *find_agent(job.brief.agent).account_env)
    values = tuple(job.env.get(name, inherited.get(name, "")) for name in names)
    key = (job.brief.agent, *values)
    if key not in known:
        known[key] = hash_account(key)
    return replace(job, brief=replace(job.brief, account=known[key]))


def hash_account(parts: Sequence[str]) -> str:
    text = "\0".join(parts).encode(errors="surrogateescape")
    digest: str = find_sha256()(text).hexdigest()
    return digest[:HASH_LENGTH]


def find_sha256() -> Callable[[bytes], Any]:
    """Python's own, found as in `random`: `hashlib` loads OpenSSL, which takes 3.7 MB."""
    for module in ("_sha2", "_sha256", "hashlib"):
        with suppress(ImportError):
            found: Callable[[bytes], Any] = import_module(module).sha256
            return found
    raise ImportError("this Python has no sha256")
