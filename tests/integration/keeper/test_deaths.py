"""kill -9 of ramherd, of its keeper, and of both: everything of them ends."""

import os
import signal
from pathlib import Path

from integration.conftest import Ramherd, Started, await_, our_cgroups, ours

RUNS = int(os.environ.get("RAMHERD_TEST_RUNS", "20"))
# Each run has a child in a session of its own that ignores TERM.
AGENT = "setsid sh -c \"trap '' TERM; sleep 300; sleep 300\" & sleep 300"


def start_runs(ramherd: Ramherd) -> Started:
    lines = "".join(f"{number}\n" for number in range(RUNS))
    options = ("--memory", "16MiB", "--grace", "1s", "--pen", ramherd.pen)
    herd = ramherd.start("run", *options, "--", "sh", "-c", AGENT, stdin=lines)
    await_(lambda: len(ours("RAMHERD_RUN")) >= 4 * RUNS - RUNS, "the runs with their children")
    return herd


def keeper_of(herd: Started) -> int:
    children = Path(f"/proc/{herd.process.pid}/task/{herd.process.pid}/children")
    return int(children.read_text().split()[0])


def test_the_keeper_ends_the_runs_of_a_dead_ramherd(each_ramherd: Ramherd) -> None:
    """Within the grace, and then itself; its cgroups go with it."""
    herd = start_runs(each_ramherd)
    herd.signal(signal.SIGKILL)
    herd.wait()
    await_(lambda: not ours(), "the keeper ends all, then itself")
    assert not our_cgroups(each_ramherd.state)


def test_a_dead_keeper_costs_no_job(each_ramherd: Ramherd) -> None:
    """Its runs cannot go on: they are cleared, and their jobs run again under a new keeper."""
    herd = start_runs(each_ramherd)
    first = set(ours("RAMHERD_RUN"))
    os.kill(keeper_of(herd), signal.SIGKILL)
    await_(lambda: not first & set(ours("RAMHERD_RUN")), "the first runs are gone")
    await_(lambda: len(ours("RAMHERD_RUN")) >= RUNS, "the jobs run again")
    herd.signal(signal.SIGTERM)
    assert herd.wait() == 130


def test_the_next_start_clears_what_both_left(each_ramherd: Ramherd) -> None:
    """With ramherd and its keeper dead nobody is there to do it before."""
    herd = start_runs(each_ramherd)
    keeper = keeper_of(herd)
    herd.signal(signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)
    herd.wait()
    assert ours("RAMHERD_RUN")
    done = each_ramherd.run("run", "--pen", each_ramherd.pen, "--", "echo", stdin="next\n")
    assert done.returncode == 0, done.stderr
    assert not ours()
    assert not our_cgroups(each_ramherd.state)


def test_a_living_herd_is_left_alone(each_ramherd: Ramherd) -> None:
    """Another start clears the dead only."""
    herd = start_runs(each_ramherd)
    runs = set(ours("RAMHERD_RUN"))
    each_ramherd.run("run", "--pen", each_ramherd.pen, "--", "echo", stdin="other\n")
    assert runs <= set(ours("RAMHERD_RUN"))
    herd.signal(signal.SIGINT)
    assert herd.wait() == 130
