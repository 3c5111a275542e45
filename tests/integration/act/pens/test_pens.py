"""What every pen has to do, on every kind that this machine and user allow."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from integration.conftest import await_, ours
from ramherd.act.pens import Pen
from ramherd.act.pens.polling import TAG
from ramherd.act.pens.selection import Fleet, make_fleet, pen_from_record
from ramherd.core.errors import NoPen
from ramherd.core.policies import GrantPolicy
from ramherd.measure.cgroups import Trees, read_trees
from ramherd.system.descendants import kill_descendants
from ramherd.system.ids import new_id
from ramherd.system.procfs import read_process

# Fewer on machines where a fork costs 20 times as much (tests/e2e/uml, tests/e2e/vm).
STORM_TRIALS = int(os.environ.get("RAMHERD_TEST_STORMS", "50"))
# Forks children in sessions of their own, which do the same, up to a few hundred at a time.
STORM = """
import os, sys, time
print("ready", flush=True)
for _ in range(40):
    if os.fork() == 0:
        os.setsid()
        for _ in range(8):
            if os.fork() == 0:
                os.setsid()
                time.sleep(30)
                os._exit(0)
            time.sleep(0.002)
        os._exit(0)
    time.sleep(0.001)
time.sleep(30)
"""
HOLD = """
import sys, time
b = bytearray(int(sys.argv[1]) << 20)
b[::4096] = b"x" * len(b[::4096])
print("ready", flush=True)
time.sleep(30)
"""
# Takes one MiB after the other, and for each a byte in a file. It does not end by itself: a test
# that had to wait for a processor still finds it.
GROW = """
import sys, time
print("ready", flush=True)
held = []
for _ in range(int(sys.argv[2])):
    block = bytearray(1 << 20)
    block[::4096] = b"x" * 256
    held.append(block)
    with open(sys.argv[1], "ab") as file:
        file.write(b"x")
    time.sleep(0.04)
time.sleep(60)
"""
# One more byte in a file every 10 ms.
COUNT = """
import sys, time
print("ready", flush=True)
while True:
    with open(sys.argv[1], "ab") as file:
        file.write(b"x")
    time.sleep(0.01)
"""


def count(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


class Yard:
    """One pen and the programs a test starts in it."""

    def __init__(self, fleet: Fleet, limit_bytes: int | None) -> None:
        self.fleet = fleet
        self.run = new_id()
        self.pen: Pen = fleet.add(self.run, limit_bytes)
        self.children: list[subprocess.Popen[bytes]] = []

    def start(self, code: str, *args: str) -> "subprocess.Popen[bytes]":
        """Joins the pen before exec, as the keeper does; returns when it printed `ready`."""
        join = "".join(f"echo 0 > {path}; " for path in self.pen.spawn_part()["join"])
        command = ["sh", "-c", f'{join}exec "$@"', "sh", sys.executable, "-I", "-S", "-c", code]
        env = {**os.environ, TAG: self.run}
        child = subprocess.Popen([*command, *args], stdout=subprocess.PIPE, env=env)
        self.children.append(child)
        proc = read_process(child.pid)
        assert proc is not None
        self.pen.set_first(proc.id)
        assert child.stdout is not None
        assert child.stdout.readline() in (b"ready\n", b"")
        child.stdout.close()
        self.fleet.scan()
        return child

    def is_empty(self) -> bool:
        self.fleet.scan()
        return self.pen.read().procs == 0

    def await_empty(self) -> None:
        """Children are reaped on the way: a zombie of ours is nobody else's to wait for."""

        def reaped() -> bool:
            for child in self.children:
                child.poll()
            return self.is_empty()

        await_(reaped, "an empty pen")


@pytest.fixture
def fleet(pen: str) -> Iterator[Fleet]:
    fleet, _why = make_fleet(pen, read_trees(), new_id())
    yield fleet
    assert await_(fleet.remove, "the fleet is removed")


def make_yard(fleet: Fleet, limit_bytes: int | None = None) -> Iterator[Yard]:
    yard = Yard(fleet, limit_bytes)
    try:
        yield yard
    finally:
        while not yard.is_empty():
            yard.pen.kill()
        for child in yard.children:
            child.wait()
        kill_descendants(os.getpid())
        assert await_(yard.pen.remove, "the pen is removed")


@pytest.fixture
def yard(fleet: Fleet) -> Iterator[Yard]:
    yield from make_yard(fleet)


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[Path]:
    """A process that nobody holds: time passes while its file grows."""
    free = tmp_path / "clock"
    other = subprocess.Popen([sys.executable, "-I", "-S", "-c", COUNT, str(free)])
    yield free
    other.kill()
    other.wait()


def pass_time(clock: Path) -> None:
    start = count(clock)
    await_(lambda: count(clock) > start + 10, "another process goes on")


def stands_still(held: Path, clock: Path) -> None:
    """Freezing is on its way for some 50 ms; after that nothing moves while others do."""
    pass_time(clock)
    before = count(held)
    pass_time(clock)
    assert count(held) == before


def test_a_pen_counts_what_its_processes_hold(yard: Yard) -> None:
    """Anonymous memory, without page cache, and the peak stays when it is given back."""
    child = yard.start(HOLD, "40")
    reading = yard.pen.read()
    assert reading.procs == 1
    assert 40 << 20 <= reading.used_bytes < 60 << 20
    child.kill()
    yard.await_empty()
    after = yard.pen.read()
    assert after.used_bytes < 10 << 20
    assert after.peak_bytes >= 40 << 20


def test_page_cache_is_not_used_memory(yard: Yard, tmp_path: Path) -> None:
    """A run that writes a file holds no memory by it."""
    write = f"open({str(tmp_path / 'big')!r}, 'wb').write(bytes(1 << 20) * 100)"
    yard.start(write + "\nprint('ready', flush=True)\nimport time; time.sleep(30)")
    assert yard.pen.read().used_bytes < 30 << 20


def test_freeze_holds_and_thaw_lets_go(yard: Yard, tmp_path: Path, clock: Path) -> None:
    """A frozen tree does nothing while others work; thawed, it goes on."""
    held = tmp_path / "held"
    yard.start(COUNT, str(held))
    yard.pen.freeze()
    stands_still(held, clock)
    before = count(held)
    yard.pen.thaw()
    await_(lambda: count(held) > before, "it goes on")


def set_grant(pen: Pen, size_mib: int) -> None:
    pen.set_grant(size_mib << 20, (size_mib + 48) << 20)
    if (event := pen.arm()) is not None:
        pen.set_event(event)


def is_at(pen: Pen, size_mib: int) -> bool:
    """Near what it may hold, as a supervisor looks at it."""
    pen.clear_event()
    return pen.read().used_bytes >= (size_mib << 20) - GrantPolicy().near_bytes


def await_grant(yard: Yard, size_mib: int) -> None:
    """As a supervisor does: woken by the event where there is one, else by looking."""
    fd = yard.pen.grant_fd()
    if fd is None:
        await_(lambda: yard.fleet.scan() or is_at(yard.pen, size_mib), "it is at its grant")
        return
    while not is_at(yard.pen, size_mib):
        assert select.select([fd], [], [], 10)[0], "no word of the grant within 10 s"


def test_a_run_is_held_at_its_grant_and_goes_on_with_more(
    yard: Yard, tmp_path: Path, clock: Path
) -> None:
    """It stops near what it may hold, loses nothing, and is only late."""
    grown = tmp_path / "grown"
    grown.touch()
    child = yard.start(GROW, str(grown), "60")
    for grant in (24, 32, 40, 48):
        set_grant(yard.pen, grant)
        await_grant(yard, grant)
        yard.pen.freeze()
        stands_still(grown, clock)
        # What comes between the event and the freezing; two looks may be any time apart.
        if yard.pen.grant_fd() is not None:
            assert yard.pen.read().used_bytes <= (grant + 12) << 20
        assert child.poll() is None
        yard.pen.thaw()
    set_grant(yard.pen, 200)
    yard.pen.thaw()
    await_(lambda: count(grown) == 60, "it has all that it wants")


def test_a_grant_below_what_is_used_is_noticed_at_once(yard: Yard) -> None:
    """The kernel never announces it, so it is asked for."""
    yard.start(HOLD, "40")
    yard.fleet.scan()
    set_grant(yard.pen, 20)
    assert is_at(yard.pen, 20)
    set_grant(yard.pen, 100)
    assert not is_at(yard.pen, 100)


def test_page_cache_does_not_hold_a_run(yard: Yard, tmp_path: Path) -> None:
    """A run that writes its log crosses its mark, and is not at it."""
    go = tmp_path / "go"
    write = (
        f"f = open({str(tmp_path / 'big')!r}, 'wb')\nfor _ in range(60): f.write(bytes(1 << 20))"
    )
    wait = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    code = f"print('ready', flush=True)\n{wait}\n{write}\nopen({str(go)!r} + '2', 'w')"
    yard.start(code + "\ntime.sleep(30)")
    set_grant(yard.pen, 40)
    go.touch()
    await_((tmp_path / "go2").exists, "it has written")
    assert not is_at(yard.pen, 40)


def test_kill_is_complete_on_a_frozen_tree(yard: Yard) -> None:
    """Frozen first, killed then: nothing is left."""
    yard.start(HOLD, "1")
    yard.pen.freeze()
    yard.pen.kill()
    yard.await_empty()


def test_a_limit_is_hard(fleet: Fleet) -> None:
    """The kernel kills in the pen at its limit, and says that it did."""
    if not fleet.kernel_limits:
        pytest.skip("a polling pen has no kernel to hold its limit")
    for yard in make_yard(fleet, 32 << 20):
        child = yard.start(HOLD, "100")
        assert child.wait(10) == -signal.SIGKILL
        reading = yard.pen.read()
        assert reading.kernel_kills == 1
        assert reading.limit_hit


@pytest.mark.parametrize("trial", range(STORM_TRIALS))
def test_a_fork_storm_with_setsid_has_no_survivors(yard: Yard, trial: int) -> None:
    """In the middle of forking, from other sessions: one kill ends all of it."""
    before = set(ours())
    yard.start(STORM)
    await_(lambda: len(set(ours()) - before) > 20 + 4 * trial, "the storm is on", 5)
    yard.pen.kill()
    yard.await_empty()
    assert not set(ours()) - before


def test_a_recorded_pen_can_be_cleared_by_another_process(fleet: Fleet) -> None:
    """What the store keeps of a pen is enough to find and end all of it."""
    yard = Yard(fleet, None)
    child = yard.start(HOLD, "1")
    again = pen_from_record(json.loads(json.dumps(yard.pen.record())))
    assert again.signal(0) == 1
    again.kill()
    assert child.wait(10) == -signal.SIGKILL
    assert await_(again.remove, "it is gone")
    assert yard.pen.remove()


def test_a_pen_that_is_asked_for_and_cannot_be_is_an_error() -> None:
    """`--pen cgroup1` fails with a hint where auto would step down."""
    nowhere = Trees({}, None)
    with pytest.raises(NoPen, match="no cgroup v1 memory"):
        make_fleet("cgroup1", nowhere, "x")
    fleet, why = make_fleet("auto", nowhere, "x")
    assert (fleet.kind, bool(why)) == ("polling", True)


def test_no_descriptor_of_a_removed_pen_stays_open(fleet: Fleet) -> None:
    """Marks are armed in threads, also while the pen is read for the first time and removed."""
    fleet.read()
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(50):
        pen = fleet.add(new_id(), None)
        pen.set_grant(64 << 20, 128 << 20)
        with ThreadPoolExecutor() as threads:
            armed = [threads.submit(pen.arm) for _ in range(3)]
            pen.read()
            assert pen.remove()
        for event in armed:
            if (fd := event.result()) is not None:
                pen.set_event(fd)
        pen.read()

    assert sorted(os.listdir("/proc/self/fd")) == before
