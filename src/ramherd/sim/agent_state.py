"""The state that a fake agent keeps between attempts, and the lock that only one copy can hold."""

import fcntl
import os
import time
from typing import NamedTuple

from ramherd.core.errors import RamherdError, UsageError

# At most 10 writes a second, so that 50 agents in fast motion do not load the machine with renames.
# A killed attempt leaves up to this much of its work out of `executed_s`.
_SAVE_EVERY_S = 0.1


class SecondCopy(RamherdError):
    """Another copy of the same agent is alive, which a supervisor must never allow."""

    exit_code = 99


class TraceProgress(NamedTuple):
    """In trace seconds, so that attempts at different speeds can be added up."""

    resume_s: float = 0.0
    executed_s: float = 0.0
    attempts: int = 0
    done: int = 0


def render_progress(progress: TraceProgress) -> str:
    pairs = zip(TraceProgress._fields, progress, strict=True)
    return "".join(f"{name} {value}\n" for name, value in pairs)


def parse_progress(text: str) -> TraceProgress:
    fields = dict(line.split(" ", 1) for line in text.splitlines())
    resume_s, executed_s = float(fields["resume_s"]), float(fields["executed_s"])
    return TraceProgress(resume_s, executed_s, int(fields["attempts"]), int(fields["done"]))


def read_progress(path: str) -> TraceProgress:
    """A missing file means the first attempt."""
    try:
        with open(path, encoding="utf-8") as file:
            return parse_progress(file.read())
    except FileNotFoundError:
        return TraceProgress()
    except (ValueError, KeyError):
        hint = f"rm {path}"
        raise UsageError(f"{path} is not a state file of the fake agent", hint=hint) from None


def write_progress(path: str, progress: TraceProgress) -> None:
    """Atomic, even if the agent is killed."""
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(render_progress(progress))
    os.replace(path + ".tmp", path)


class WorkLog:
    """Adds the work of this attempt to that of earlier ones; without a path it only counts."""

    def __init__(self, path: str, *, checkpoint_s: float, resumed: bool) -> None:
        before = read_progress(path) if path else TraceProgress()
        self._path, self._checkpoint_s = path, checkpoint_s
        self._executed_before_s = before.executed_s
        self._saved_at = 0.0
        self.attempt = before.attempts + 1
        self.done = False
        self.start_s = self._at_s = before.resume_s if resumed else 0.0
        self.save()

    @property
    def progress(self) -> TraceProgress:
        executed_s = self._executed_before_s + self._at_s - self.start_s
        resume_s = max(self.start_s, self._last_checkpoint_s())
        return TraceProgress(round(resume_s, 3), round(executed_s, 3), self.attempt, int(self.done))

    def record(self, at_s: float) -> None:
        """The work is done up to `at_s`."""
        self._at_s = at_s
        if time.monotonic() - self._saved_at >= _SAVE_EVERY_S:
            self.save()

    def save(self) -> None:
        if self._path:
            write_progress(self._path, self.progress)
        self._saved_at = time.monotonic()

    def _last_checkpoint_s(self) -> float:
        return self._at_s - self._at_s % self._checkpoint_s if self._checkpoint_s else self._at_s


def acquire_lock(path: str) -> int:
    """Held by the returned descriptor until the agent and its tool calls have ended."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise SecondCopy(f"another copy of this agent is running: it holds {path}") from None
    return lock
