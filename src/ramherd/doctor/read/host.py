"""The machine and the user to examine."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ramherd.system.procfs import read_text


def read_cwd() -> Path:
    """A removed working directory has no settings."""
    try:
        return Path.cwd()
    except OSError:
        return Path("/")


@dataclass(frozen=True, slots=True)
class Host:
    """Paths of the machine start at `root`, those of the user at `home`."""

    root: Path = Path("/")
    home: Path = field(default_factory=lambda: Path(os.path.expanduser("~")))
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    uid: int = field(default_factory=os.getuid)
    # The project, whose settings apply too.
    cwd: Path = field(default_factory=read_cwd)

    @property
    def proc(self) -> Path:
        return self.root / "proc"

    def text(self, path: str) -> str:
        """The text of a file below the root; empty if there is none."""
        try:
            return read_text(self.root / path) or ""
        except OSError:  # a directory, or a device that does not answer
            return ""

    def number(self, path: str) -> int | None:
        text = self.text(path).strip()
        return int(text) if text.isdigit() else None
