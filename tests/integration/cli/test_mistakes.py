"""Typical mistakes (`mistakes.py`): the line, the exit code, and a hint that works when typed."""

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from integration.cli.mistakes import FILES, MISTAKES, Mistake
from ramherd.cli.main import call
from ramherd.cli.mistakes import VERB_HABITS
from ramherd.cli.parser import make_parser
from ramherd.cli.verbs import VERBS
from support.shell_agent import SCRIPT

# Verbs that only read, and end by themselves: what the hint says is called. `run` is called with
# --dry-run; of the others the options are parsed.
READING = ("jobs", "logs", "show", "events", "results", "config", "help", "history")
VARIABLE = re.compile(r"([A-Z_]+)=(.*)")


class Place(Mapping[str, str]):
    """The directory of the calls, and the names that stand in the table as {here} and {herd}."""

    def __init__(self, here: Path, herd: str) -> None:
        self.here, self._names = here, {"here": str(here), "herd": herd}

    def __getitem__(self, name: str) -> str:
        return self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def fill(self, text: str) -> str:
        for name, value in self.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.here / name).parent.mkdir(exist_ok=True)
            (self.here / name).write_text(text)


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A store with a herd of the jobs `lint` and `fix-lint`, and a program named claude."""
    base = tmp_path_factory.mktemp("mistakes")
    programs = base / "bin"
    programs.mkdir()
    (programs / "claude").write_text(SCRIPT.replace("HERE", str(base)))
    (programs / "claude").chmod(0o755)
    environ = {
        "XDG_STATE_HOME": str(base / "state"),
        "XDG_CONFIG_HOME": str(base / "config"),
        "RAMHERD_RUNTIME_DIR": str(base / "runtime"),
        "RAMHERD_PEN": "polling",
        "RAMHERD_MAX_CPU_PRESSURE": "none",
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    jobs = "".join(f'{{"name": "{name}", "command": "true"}}\n' for name in ("lint", "fix-lint"))
    subprocess.run(
        [sys.executable, "-m", "ramherd", "run", "-"], input=jobs, text=True, check=True,
        capture_output=True, env={**os.environ, **environ},
    )  # fmt: skip
    return environ


@pytest.fixture
def place(
    surroundings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Place:  # fmt: skip
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    assert call(["results", "--json"]) == 0
    made = Place(tmp_path, re.findall(r'"herd": "(\w+)"', capsys.readouterr().out)[0])
    made.write(FILES)
    return made


def call_line(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """In this process, as the shell would call it; nothing is on standard input."""
    words = shlex.split(line)
    while (variable := VARIABLE.fullmatch(words[0])) is not None:
        monkeypatch.setenv(*variable.groups())
        words = words[1:]
    assert words[0] == "ramherd"
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        try:
            return call(words[1:])
        except SystemExit as ended:
            return int(ended.code or 0)


def typed_by_hint(mistake: Mistake) -> str:
    """What a user types next: the command of the hint, or the line with the proposed word."""
    if mistake.right:
        return mistake.right
    if meant := re.match(r"did you mean '([^']*)'", mistake.hint):
        wrong = re.findall(r"'([^']*)'", mistake.error)[0]
        return mistake.typed.replace(wrong, meant[1], 1)
    assert "ramherd " in mistake.hint
    return mistake.hint if " | " in mistake.hint else mistake.hint[mistake.hint.index("ramherd ") :]


def follow(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the hinted call, as far as it can be made without changing anything."""
    if " | " in line or " && " in line:
        # With a store of its own: a herd that runs would be the newest for the mistakes after it.
        env = {**os.environ, "XDG_STATE_HOME": str(Path.cwd() / "state")}
        done = subprocess.run(["sh", "-c", line], env=env, capture_output=True, check=False)
        return done.returncode
    words = [word for word in shlex.split(line) if not VARIABLE.fullmatch(word)]
    name = words[1]
    if name == "run" and "--help" not in words:
        at = line.index(" run") + len(" run")
        return call_line(f"{line[:at]} --dry-run{line[at:]}", monkeypatch)
    if name in READING or name.startswith("--") or "--help" in words:
        return call_line(line, monkeypatch)
    end = words.index("--") if "--" in words else len(words)
    make_parser(name).parse_args(words[2:end])
    return 0


def test_there_are_sixty_typical_mistakes() -> None:
    """Each is typed differently, or is about another file."""
    assert len({(one.typed, *one.files.values()) for one in MISTAKES}) == len(MISTAKES) >= 60


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: f"{one.typed} {[*one.files]}")
def test_a_mistake_is_one_line_and_its_hint_works(
    mistake: Mistake, place: Place, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Nothing is printed but the error and the hint; what the hint says is accepted."""
    place.write(mistake.files)
    assert call_line(place.fill(mistake.typed), monkeypatch) == mistake.code
    said = capsys.readouterr()
    error, hint = place.fill(mistake.error), place.fill(mistake.hint)
    assert (said.out, said.err) == ("", f"ramherd: {error}\n  hint: {hint}\n")
    place.write(mistake.mended)
    code = follow(place.fill(typed_by_hint(mistake)), monkeypatch)
    assert code == 0, capsys.readouterr().err


def test_habits_lead_to_verbs() -> None:
    """Each stands for one that exists."""
    for meant in VERB_HABITS.values():
        assert meant.split()[0] in VERBS or meant == "--version"
