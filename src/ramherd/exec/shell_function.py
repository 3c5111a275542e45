"""A function in the user's shell, so that an agent that is typed by hand runs in a pen.

It stands between two marks at the very beginning of the shell's file: nothing before it has to be
changed, so removing it leaves the file byte for byte as it was.
"""

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from ramherd.core.errors import UsageError

SHELLS = ("bash", "zsh", "fish")
# The programs have the names of the agents.
PROGRAMS = ("claude", "codex", "gemini", "opencode", "qwen")
BEGIN, END = "# >>> ramherd exec {name} >>>", "# <<< ramherd exec {name} <<<"
# Follows the first mark if there was no file before.
NEW_FILE = " (new file)"
# `command` runs the program and not this function. Within a pen no second pen is made, and without
# ramherd the program runs as usual.
POSIX = """\
function {name} {{
    if [ -z "${{RAMHERD_RUN-}}" ] && command -v ramherd >/dev/null 2>&1; then
        command ramherd exec -- {name} "$@"
    else
        command {name} "$@"
    fi
}}
"""
FISH = """\
function {name} --wraps {name}
    if not set -q RAMHERD_RUN; and command -q ramherd
        command ramherd exec -- {name} $argv
    else
        command {name} $argv
    end
end
"""


class ShellFile(NamedTuple):
    """The file that a shell reads when a terminal is opened."""

    shell: str
    path: Path

    @property
    def load(self) -> str:
        """The command that makes a shell read it again."""
        return f"source {self.path}"


def find_shell_file(shell: str | None) -> ShellFile:
    """The file of the login shell, unless another shell is named."""
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    if name not in SHELLS:
        raise UsageError(
            f"the shell {name or 'of this user'} is not known", hint="--shell bash, zsh or fish"
        )
    home = Path.home()
    paths = {
        "bash": home / ".bashrc",
        "zsh": Path(os.environ.get("ZDOTDIR") or home) / ".zshrc",
        "fish": Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "fish/config.fish",
    }
    return ShellFile(name, paths[name])


def install(file: ShellFile, name: str) -> bool:
    """False if the function already exists as this version writes it."""
    before = read(file.path)
    rest = remove_block(before or b"", name)
    is_new = before is None or (NEW_FILE.encode() in before.partition(b"\n")[0] and not rest)
    after = make_block(file.shell, name, is_new=is_new) + rest
    if after == before:
        return False
    write(file.path, after)
    return True


def uninstall(file: ShellFile, name: str) -> bool:
    """False if there is none. A file that we made, and that has no other lines, is removed."""
    before = read(file.path)
    if before is None or begin_mark(name) not in before:
        return False
    rest = remove_block(before, name)
    if not rest and NEW_FILE.encode() in before.partition(b"\n")[0]:
        file.path.unlink()
    else:
        write(file.path, rest)
    return True


def has_alias(file: ShellFile, name: str) -> bool:
    """A shell prefers an alias to a function."""
    return (
        re.search(rb"^\s*alias\s+%b[= ]" % name.encode(), read(file.path) or b"", re.M) is not None
    )


def make_block(shell: str, name: str, *, is_new: bool) -> bytes:
    body = (FISH if shell == "fish" else POSIX).format(name=name)
    begin = BEGIN.format(name=name) + (NEW_FILE if is_new else "")
    return f"{begin}\n{body}{END.format(name=name)}\n".encode()


def begin_mark(name: str) -> bytes:
    return BEGIN.format(name=name).encode()


def remove_block(text: bytes, name: str) -> bytes:
    """All but our lines. Without the second mark their end is unknown, and nothing is removed."""
    before, begin, rest = text.partition(begin_mark(name))
    _ours, end, after = rest.partition(END.format(name=name).encode() + b"\n")
    return before + after if begin and end else text


def read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def write(path: Path, data: bytes) -> None:
    """Writes at once, with the mode that the file had. A link stays a link."""
    real = Path(os.path.realpath(path))
    made = real.with_name(f".{real.name}.ramherd")
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else 0o644
        made.write_bytes(data)
        made.chmod(mode)
        made.replace(real)
    except OSError as error:
        made.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
