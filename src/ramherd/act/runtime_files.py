"""The runtime directory of a process that lives long.

logind removes /run/user/UID when its user logs out, and the path is another one then: the programs
of that user find each other in /tmp until the next login. A process with files there checks once a
tick that they are still where others look for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ramherd.config.paths import runtime_dir
from ramherd.core.errors import RamherdError
from ramherd.core.reasons import Reason, Why

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    # Makes files of its own again where they are missing in a directory; whether they were.
    Restore = Callable[[Path], bool]


class RuntimeFiles:
    """A plain class: `ramherd exec` has one, and `dataclasses` takes 20 ms to import."""

    def __init__(
        self, path: Path, parts: list[Restore], find_dir: Callable[[], Path] = runtime_dir
    ) -> None:
        self.path, self.parts = path, parts
        self._find_dir = find_dir
        # Why the files cannot be made now: tried again with the next tick.
        self._trouble = ""

    def restore(self) -> Reason | None:
        """What happened, if it is news."""
        before, self._trouble = self._trouble, ""
        is_restored = False
        try:
            self.path = self._find_dir()
            is_restored = sum(part(self.path) for part in self.parts) > 0
        except RamherdError as error:
            self._trouble = str(error)
        except OSError as error:
            self._trouble = f"cannot make {error.filename or self.path}: {error.strerror}"
        if self._trouble and self._trouble != before:
            return Reason(Why.NO_RUNTIME, what=self._trouble)
        return Reason(Why.RUNTIME_RESTORED, path=str(self.path)) if is_restored else None
