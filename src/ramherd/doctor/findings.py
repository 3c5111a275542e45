"""The result of a check, and a possible fix."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from shlex import quote

from ramherd.core.model import Number


class Severity(StrEnum):
    OK = "ok"
    HINT = "hint"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class SetMode:
    """Changes the mode of a file or directory, if it still has the mode that was seen."""

    path: str
    mode: int
    old_mode: int

    @property
    def step(self) -> str:
        return f"chmod {self.mode:o} {quote(self.path)}"

    @property
    def undo(self) -> str:
        return f"chmod {self.old_mode:o} {quote(self.path)}"


@dataclass(frozen=True, slots=True)
class CommentOut:
    """Comments out one line of a start file, if it is unchanged; a copy is kept beside it."""

    path: str
    line: int
    text: str
    prefix: str
    backup: str

    @property
    def step(self) -> str:
        return f"comment out line {self.line} of {self.path} (copy: {self.backup})"

    @property
    def undo(self) -> str:
        return f"cp {quote(self.backup)} {quote(self.path)}"


@dataclass(frozen=True, slots=True)
class SetKernel:
    """Sets a /proc/sys value; `path` is its file. `kept_in` is a file of sysctl.d that sets it at
    each boot; without it, the value is the default of the kernel.
    """

    path: str
    name: str
    value: int
    old_value: int
    kept_in: str = ""

    @property
    def line(self) -> str:
        return f"{self.name} = {self.value}"

    @property
    def step(self) -> str:
        kept = f" (at each boot: {self.kept_in})" if self.kept_in else ""
        return f"sysctl -w {self.name}={self.value}{kept}"

    @property
    def undo(self) -> str:
        undo = f"sysctl -w {self.name}={self.old_value}"
        return (
            f"{undo} && sed -i '/^{self.line}$/d' {quote(self.kept_in)}" if self.kept_in else undo
        )


@dataclass(frozen=True, slots=True)
class RunCommand:
    argv: tuple[str, ...]
    undo_argv: tuple[str, ...]

    @property
    def step(self) -> str:
        return " ".join(self.argv)

    @property
    def undo(self) -> str:
        return " ".join(self.undo_argv)


Fix = SetMode | CommentOut | SetKernel | RunCommand


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` is the fact, `why` its effect, `command` the remedy. A fix must be safe and
    reversible; `numbers` are those that were compared.
    """

    check: str
    level: Severity
    what: str
    why: str = ""
    command: str = ""
    fix: Fix | None = None
    numbers: Mapping[str, Number] = field(default_factory=dict)
