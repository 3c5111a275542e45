"""What a session is, and how it ended."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # `typing` costs 4 ms
if TYPE_CHECKING:
    from typing import Any


class Session:
    """What is asked for, and the ids it goes by."""

    def __init__(
        self, ids: list[str], argv: list[str], memory_bytes: int, limit_bytes: int | None
    ) -> None:
        self.herd, self.job, self.run, self.owner = ids
        self.argv = argv
        self.name = os.path.basename(argv[0]) or argv[0]
        self.memory_bytes = memory_bytes
        self.limit_bytes = limit_bytes

    def spec(self) -> dict[str, Any]:
        """The job as `store/sqlite.py` writes one."""
        return {
            "id": self.job, "herd": self.herd, "name": self.name, "seq": 0, "argv": self.argv,
            "cwd": os.getcwd(), "memory_bytes": self.memory_bytes, "env": {}, "stdin": None,
            "priority": 0, "after": [], "label": "", "memory_limit_bytes": self.limit_bytes,
            "timeout_s": None, "retries": 0,
        }  # fmt: skip


class End:
    """How a session ended: the words of `RunEnd` and `JobState`, and the reason as JSON."""

    def __init__(
        self, end: str, reason: dict[str, Any], code: int | None = None, signal: int | None = None
    ) -> None:
        self.end, self.reason, self.code, self.signal = end, reason, code, signal
        self.peak_bytes: int | None = None

    @property
    def state(self) -> str:
        return self.end if self.end in ("done", "cancelled") else "failed"
