"""The keeper feeds a process one thing after another, and passes it from run to run."""

import errno
import os
import select
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import await_, ours
from ramherd.act.executor import read_exit
from ramherd.act.keeper_client import KeeperClient, start_keeper

LOG = [1 << 20, 1 << 20]
# Answers each line; `quit` is its last.
ECHO = 'while read -r line; do echo "said $line"; [ "$line" != quit ] || exit 3; done; echo end'


class Kept:
    """A keeper, what it is asked and what it says."""

    def __init__(self, link: KeeperClient, here: Path) -> None:
        self.link = link
        self.here = here

    def text(self, name: str, text: str) -> str:
        (self.here / name).write_text(text)
        return str(self.here / name)

    def ask(self, do: str, **values: Any) -> None:
        self.link.send(do, **values)
        self.link.release()
        self.link.flush()

    def spawn(self, run: str, text: str) -> None:
        (self.here / run).mkdir()
        self.ask(
            "spawn", run=run, argv=["sh", "-c", ECHO], argv_file="", cwd="/",
            dir=str(self.here / run), fed=True, stdin=self.text(f"{run}.in", text),
            env=[dict(os.environ)], join=[], dirs=[], log=LOG,
            on_loss={"thaw": [], "kill": []},
        )  # fmt: skip

    def pass_on(self, run: str, to: str, text: str) -> None:
        (self.here / to).mkdir(exist_ok=True)
        stdin = self.text(f"{to}.in", text)
        self.ask("pass", run=run, to=to, dir=str(self.here / to), stdin=stdin, log=LOG)

    def out(self, run: str) -> str:
        path = self.here / run / "out"
        return path.read_text() if path.exists() else ""

    def hear(self, did: str, run: str) -> dict[str, Any]:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            select.select([self.link.fileno()], [], [], 0.1)
            for message in self.link.receive() or ():
                if (message["did"], message["run"]) == (did, run):
                    return message
        raise AssertionError(f"the keeper did not say {did} of {run}")


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    with closing(start_keeper(0.5, tmp_path / "keeper.err", 1024)) as link:
        yield Kept(link, tmp_path)
    await_(lambda: not ours(), "the keeper and its runs are gone")
    assert (tmp_path / "keeper.err").read_text() == ""


def test_a_process_is_fed_and_passed_on(kept: Kept) -> None:
    """What it says to the second run is in the second one's log, its exit is the second one's."""
    kept.spawn("A", "one\n")
    first = kept.hear("started", "A")
    await_(lambda: kept.out("A") == "said one\n", "the first answer")
    kept.ask("feed", run="A", stdin=kept.text("more", "two\n"))
    await_(lambda: kept.out("A") == "said one\nsaid two\n", "the second answer")
    kept.pass_on("A", "B", "three\n")

    assert kept.hear("started", "B")["pid"] == first["pid"]
    await_(lambda: kept.out("B") == "said three\n", "the third answer")
    kept.ask("hang_up", run="B")
    assert kept.hear("exited", "B")["code"] == 0
    assert kept.out("B") == "said three\nend\n"
    assert kept.out("A") == "said one\nsaid two\n"
    assert (kept.here / "A/meta.json").exists()
    assert read_exit(kept.here / "A", 0.0) is None


def test_more_than_a_pipe_holds(kept: Kept) -> None:
    """It reads slowly; not a line is lost, and other runs are not kept waiting."""
    kept.spawn("A", "".join(f"{n:0100}\n" for n in range(5000)))
    kept.spawn("B", "short\n")
    kept.ask("hang_up", run="A")
    kept.ask("hang_up", run="B")
    kept.hear("exited", "B")
    await_(lambda: kept.out("A").endswith("end\n"), "all of it was read")

    assert kept.out("A").count("said ") == 5000


def test_a_process_that_is_gone_is_not_passed_on(kept: Kept) -> None:
    """The run that was to have it is refused, with an error of its own."""
    kept.spawn("A", "quit\n")
    kept.hear("exited", "A")
    kept.pass_on("A", "B", "never\n")
    assert kept.hear("refused", "B")["errno"] == errno.ESRCH
    kept.pass_on("nobody", "C", "never\n")
    assert kept.hear("refused", "C")["errno"] == errno.ESRCH


def test_a_process_that_was_told_to_end_is_not_passed_on(kept: Kept) -> None:
    """Nor one whose log cannot be made: it stays with its run."""
    kept.spawn("A", "one\n")
    kept.hear("started", "A")
    (kept.here / "B").write_text("a file where a directory should be")
    kept.ask("pass", run="A", to="B", dir=str(kept.here / "B"), stdin="/dev/null", log=LOG)
    assert kept.hear("refused", "B")["errno"] == errno.ENOTDIR
    kept.ask("hang_up", run="A")
    kept.pass_on("A", "C", "never\n")

    assert kept.hear("refused", "C")["errno"] == errno.ESRCH
    await_(lambda: kept.out("A") == "said one\nend\n", "the first run has it still")
