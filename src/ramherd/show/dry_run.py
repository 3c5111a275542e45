"""What would be started, as lines that a shell understands."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

SECRET = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH")


@dataclass(frozen=True, slots=True)
class Planned:
    name: str
    cwd: str
    argv: tuple[str, ...]
    # Beside what ramherd itself was started with.
    env: Mapping[str, str]
    stdin: str | None


def render_plan(jobs: Iterable[Planned]) -> Iterator[str]:
    for job in jobs:
        yield f"# {shlex.quote(job.name)}"
        env = [f"{name}={hidden(name, text)}" for name, text in sorted(job.env.items())]
        given = f" <<< {shlex.quote(job.stdin)}" if job.stdin is not None else ""
        words = " ".join([*env, shlex.join(job.argv)])
        yield f"cd {shlex.quote(job.cwd)} && {words}{given}"


def hidden(name: str, text: str) -> str:
    """No secret reaches a screen or a log."""
    secret = any(part in name.upper() for part in SECRET)
    return "(hidden)" if secret else shlex.quote(text)
