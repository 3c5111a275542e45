"""The runtime directory of a long-lived process.

logind removes /run/user/UID when its user logs out. Until the next login, programs of that user
find each other in /tmp. A process with files in the runtime directory checks once a tick that they
are still where other programs look for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ramherd.config.paths import runtime_dir
from ramherd.core.errors import RamherdError
from ramherd.core.reasons import Reason, Why

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    # Makes the files of the process again if they are missing in a directory; returns whether they
    # were.
    Restore = Callable[[Path], bool]


class RuntimeFiles:
    """A plain class: `ramherd exec` uses it, and `dataclasses` takes 20 ms to import."""

    def __init__(
        self, path: Path, parts: list[Restore], find_dir: Callable[[], Path] = runtime_dir
    ) -> None:
        self.path, self.parts = path, parts
        self._find_dir = find_dir
        # Why the files cannot be made now: the next tick tries again.
        self._trouble = ""

    def restore(self) -> Reason | None:
        """Returns what happened, if that is new."""
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
