"""A keeper that outlives its supervisor: its runs go on, and the next supervisor takes over."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from integration.conftest import await_, ours
from ramherd.act.keeper_client import Adoption, KeeperClient, adopt_keeper, start_keeper
from ramherd.act.run_directory import make_run_directory
from ramherd.core.errors import StoreError
from ramherd.keeper.requests import SHAPES
from ramherd.system.procfs import read_peak_rss_bytes, read_process
from ramherd.system.unix_socket import connect

# A supervisor: asks what it is told on its standard input, and goes on until it is killed.
SUPERVISOR = """
import sys, time
from pathlib import Path
from ramherd.act.keeper_client import Adoption, start_keeper
here = Path(sys.argv[1])
adoption = Adoption((here / "adoption",), float(sys.argv[2]))
link = start_keeper(0.5, here / "keeper.err", 1024, adoption)
link._outbox = sys.stdin.buffer.read()
link.flush()
started = 0
while started < int(sys.argv[3]):
    started += sum(message["did"] == "started" for message in link.receive())
    time.sleep(0.01)
print(link.proc_id.pid, flush=True)
time.sleep(600)
"""


def spawn(here: Path, run: str, script: str) -> bytes:
    make_run_directory(here / run, None)
    request = {
        "do": "spawn", "run": run, "argv": ["sh", "-c", script], "cwd": "/",
        "dir": str(here / run), "stdin": "", "env": [dict(os.environ)], "argv_file": "", "join": [],
        "on_loss": {"thaw": [], "kill": []}, "dirs": [], "log": [1 << 20, 1 << 20],
        "fed": False,
    }  # fmt: skip
    return json.dumps(request).encode() + b"\n"


class Herd:
    """Runs whose supervisor can be killed; what the keeper tells the next one."""

    def __init__(self, here: Path) -> None:
        self.here = here
        self.keeper = 0

    def supervise(self, requests: bytes, *, started: int, alone_s: float = 60.0) -> None:
        """Until they have started; then the supervisor is killed."""
        command = [sys.executable, "-c", SUPERVISOR, str(self.here), str(alone_s), str(started)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin as stdin:
            stdin.write(requests)
        self.keeper = int(process.stdout.readline())
        process.kill()
        process.wait()
        process.stdout.close()

    def adopt(self) -> KeeperClient:
        link = adopt_keeper(self.here / "adoption")
        assert link is not None
        return link

    def is_gone(self) -> bool:
        proc = read_process(self.keeper)
        return proc is None or not proc.is_alive


def hear_until(link: KeeperClient, done: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    heard: list[dict[str, Any]] = []
    deadline = time.monotonic() + 20
    while not any(map(done, heard)):
        assert time.monotonic() < deadline, heard
        select.select([link.fileno()], [], [], 0.1)
        messages = link.receive()
        assert messages is not None, heard
        heard += messages
    return heard


def is_end_of(*runs: str) -> Callable[[dict[str, Any]], bool]:
    left = set(runs)

    def done(message: dict[str, Any]) -> bool:
        if message["did"] in ("exited", "refused"):
            left.discard(message["run"])
        return not left

    return done


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Herd]:
    made = Herd(tmp_path)
    yield made
    await_(made.is_gone, "the keeper ends")
    assert (tmp_path / "keeper.err").read_text() == ""


def test_runs_go_on_and_are_adopted_with_their_output_and_exit_code(herd: Herd) -> None:
    """kill -9 of the supervisor: not a line is missing, and the status is told to the next."""
    go = herd.here / "go"
    script = f"echo before; while ! [ -e {go} ]; do sleep 0.01; done; echo after; exit 7"
    herd.supervise(spawn(herd.here, "R1", script), started=1)
    with closing(herd.adopt()) as link:
        assert link.known == ("R1",)
        go.touch()
        heard = hear_until(link, is_end_of("R1"))

    assert [one["did"] for one in heard] == ["started", "exited"]
    assert (heard[-1]["code"], heard[-1]["signal"], heard[-1]["closed"]) == (7, None, True)
    assert (herd.here / "R1/out").read_text() == "before\nafter\n"


def test_what_ended_while_nobody_was_there_is_told_to_the_next(herd: Herd) -> None:
    """Each supervisor hears it until one has it on record, and it stands in `status` as well."""
    requests = spawn(herd.here, "R1", "exec sleep 300") + spawn(herd.here, "R2", "echo x; exit 3")
    herd.supervise(requests, started=2)
    await_((herd.here / "R2/status").exists, "its status is written")
    for _time in range(2):
        link = herd.adopt()
        heard = hear_until(link, is_end_of("R2"))
        link.leave()
        assert sorted(link.known) == ["R1", "R2"]
        assert [one["code"] for one in heard if one["did"] == "exited"] == [3]
    assert json.loads((herd.here / "R2/status").read_bytes())["code"] == 3
    link = herd.adopt()
    hear_until(link, is_end_of("R2"))
    link.send("forget", run="R2")
    link.release()
    link.flush()
    link.leave()
    with closing(herd.adopt()) as last:
        assert last.known == ("R1",)


def test_a_run_that_left_nothing_behind_is_told_apart(herd: Herd) -> None:
    """Also while others live: their first processes are known."""
    after_r2 = f"while ! grep -q code {herd.here}/R2/status; do sleep 0.01; done"
    requests = b"".join(
        spawn(herd.here, run, script)
        for run, script in (
            ("R1", "sleep 300; exit"),
            ("R2", "sleep 0.01; exit 0"),
            ("R3", f"{after_r2}; sleep 300 & exit 0"),
        )
    )
    herd.supervise(requests, started=3)
    with closing(herd.adopt()) as link:
        heard = hear_until(link, is_end_of("R2", "R3"))

    left = {one["run"]: one["left"] for one in heard if one["did"] == "exited"}
    assert left == {"R2": False, "R3": True}


def test_half_a_request_is_none(herd: Herd) -> None:
    """A supervisor killed in the middle of a line: what was whole is done, the rest never."""
    torn = spawn(herd.here, "R2", "exec sleep 300")[:-30]
    herd.supervise(spawn(herd.here, "R1", "exec sleep 300") + torn, started=1)
    with closing(herd.adopt()) as link:
        assert link.known == ("R1",)
        link._outbox = spawn(herd.here, "R3", "exit 4")
        link.flush()
        heard = hear_until(link, is_end_of("R3"))
    assert heard[-1]["code"] == 4
    assert "R2" not in {message["run"] for message in heard}


def test_the_last_requests_of_a_supervisor_that_is_gone_are_read(herd: Herd) -> None:
    """It has closed its socket before the keeper greets it: the greeting fails, and what it asked
    is done all the same.
    """
    script = f"kill -STOP $$; echo x > {herd.here}/thawed; exec sleep 300"
    herd.supervise(spawn(herd.here, "R1", script), started=1)
    await_((herd.here / "thawed").exists, "the keeper has noticed that the first one went")
    os.kill(herd.keeper, signal.SIGSTOP)
    with connect(herd.here / "adoption", 10.0) as channel:
        channel.sendall(b'{"do": "end"}\n')
    os.kill(herd.keeper, signal.SIGCONT)
    await_(lambda: not ours(), "everything ends")
    assert json.loads((herd.here / "R1/status").read_bytes())["signal"] == signal.SIGTERM


def test_a_second_supervisor_is_sent_away(herd: Herd) -> None:
    """While one is there; the first goes on undisturbed."""
    herd.supervise(spawn(herd.here, "R1", "exec sleep 300"), started=1)
    with closing(herd.adopt()) as link:
        with pytest.raises(StoreError, match="has a supervisor already"):
            adopt_keeper(herd.here / "adoption", wait_s=0.1)
        link._outbox = spawn(herd.here, "R2", "exit 0")
        link.flush()
        assert hear_until(link, is_end_of("R2"))


def test_a_stopped_run_goes_on_when_its_supervisor_is_gone(herd: Herd) -> None:
    """Nobody is left to give it more memory: held for ever would be lost."""
    script = f"kill -STOP $$; echo x > {herd.here}/thawed; exec sleep 300"
    herd.supervise(spawn(herd.here, "R1", script), started=1)
    await_((herd.here / "thawed").exists, "the run goes on")
    herd.adopt().close()


def test_a_keeper_without_runs_ends_by_itself(herd: Herd) -> None:
    """What there was to tell is on disk; the next supervisor finds nobody, and that is told."""
    herd.supervise(spawn(herd.here, "R1", "sleep 0.2"), started=1)
    await_(herd.is_gone, "the keeper ends")
    assert json.loads((herd.here / "R1/status").read_bytes())["code"] == 0
    assert adopt_keeper(herd.here / "adoption") is None
    assert not (herd.here / "adoption").exists()


def test_nobody_is_waited_for_for_ever(herd: Herd) -> None:
    """After its time alone the keeper ends the runs and itself."""
    herd.supervise(spawn(herd.here, "R1", "exec sleep 300"), started=1, alone_s=0.2)
    await_(lambda: not ours(), "everything ends")
    assert json.loads((herd.here / "R1/status").read_bytes())["signal"] == signal.SIGTERM


def test_an_adoptable_keeper_is_as_small_as_any(tmp_path: Path) -> None:
    """12 MB at most: it lives as long as the runs do."""
    adoption = Adoption((tmp_path / "adoption",))
    with closing(start_keeper(1.0, tmp_path / "keeper.err", 1024, adoption)) as link:
        link._outbox = spawn(tmp_path, "R1", "exit 0")
        link.flush()
        await_((tmp_path / "R1/status").exists, "a run has ended")
        assert read_peak_rss_bytes(link.proc_id.pid) <= 12_000_000


TEXT = st.text(max_size=8)
LINES = st.one_of(
    st.binary(max_size=40),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=6,
    ).map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries(
        {"do": st.sampled_from(["adopt", *sorted(SHAPES.keys() - {"end"})])},
        optional={
            key: TEXT | st.lists(TEXT, max_size=2) | st.integers() | st.none()
            for key in sorted({key for shape in SHAPES.values() for key in shape})
        },
    ).map(lambda value: json.dumps(value).encode()),
)


@settings(
    max_examples=60, deadline=None, database=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(lines=st.lists(LINES, max_size=5))
def feed(path: Path, lines: list[bytes]) -> None:
    """One supervisor that says anything at all, and goes in the middle of it."""

    def is_let_in() -> bool:
        channel = connect(path, 10.0)
        with channel:
            if b"here" not in channel.recv(1 << 16):
                return False
            with suppress(BrokenPipeError, ConnectionResetError):
                channel.sendall(b"\n".join(lines))
            return True

    await_(is_let_in, "the keeper has noticed that the last one went")


def test_no_line_ends_the_keeper_or_its_runs(herd: Herd) -> None:
    """Whatever is said to it, a run that it has goes on, and it listens to the next."""
    herd.supervise(spawn(herd.here, "R1", "echo x; sleep 300 & wait; exit 5"), started=1)
    feed(herd.here / "adoption")
    (child,) = [pid for pid in ours() if (proc := read_process(pid)) and proc.name == "sleep"]
    with closing(herd.adopt()) as link:
        assert "R1" in link.known
        os.kill(child, signal.SIGKILL)
        heard = hear_until(link, is_end_of("R1"))
    assert heard[-1]["code"] == 5
