"""Another program has the store locked: a shell with an open transaction, a backup."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.faults.conftest import Losses
from integration.conftest import Ramherd, await_, ours
from integration.service.conftest import Service

HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(store: Path) -> Iterator[int]:
    """The pid of the program that has it."""
    command = [sys.executable, "-c", HOLD, str(store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        try:
            yield holder.pid
        finally:
            holder.communicate()


def says_who_locked(text: str, pid: int) -> bool:
    return f"database is locked by process {pid} (" in text


def is_running(name: str) -> bool:
    return any(name in Path(f"/proc/{pid}/cmdline").read_text() for pid in ours("RAMHERD_RUN"))


def test_a_locked_store_keeps_nothing_from_ending(service: Service, losses: Losses) -> None:
    """`jobs`, `submit` and `cancel` answer, TERM ends the service, and nothing is lost."""
    ramherd = service.ramherd
    service.submit(
        {"name": "again", "command": "sleep 61.1"}, {"name": "gone", "command": "sleep 61.2"}
    )
    await_(lambda: is_running("61.1") and is_running("61.2"), "both run")
    service.await_state("gone", "running")
    service.await_state("again", "running")
    with locked(ramherd.state / "ramherd/ramherd.db") as pid:
        began = time.monotonic()
        refused = ramherd.run("submit", "--", "echo", stdin="x\n")
        assert (refused.returncode, says_who_locked(refused.stderr, pid)) == (3, True), (
            refused.stderr
        )
        assert ramherd.run("jobs").returncode == 0
        cancelled = ramherd.run("cancel", "gone")
        assert cancelled.returncode == 0, cancelled.stderr
        await_(lambda: not is_running("61.2"), "the cancelled job ends")
        assert is_running("61.1")
        await_(lambda: says_who_locked(service.said, pid), "told")
        await_(lambda: "): no job starts until this is resolved" in service.said, "told why")
        assert time.monotonic() - began < 20
        began = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - began < 10
    service.start()
    await_(lambda: is_running("61.1"), "the other one goes on")
    again, gone = service.job("again"), service.job("gone")
    losses(
        "the store of a service is locked",
        jobs_failed=sum(job["failures"] for job in (again, gone)),
        cancellations=int(gone["state"] != "cancelled"),
        jobs=int(again["state"] != "running"),
    )


def test_a_herd_goes_on_while_its_store_is_locked(ramherd: Ramherd, losses: Losses) -> None:
    """What ended meanwhile is written when the lock is gone."""
    go = ramherd.state.with_name("go")
    jobs = [
        {"name": "a", "command": f"until [ -e {go} ]; do sleep 0.05; done; exit 4"},
        {"name": "b", "command": "true", "after": ["c"]},
        {"name": "c", "command": f"until [ -e {go} ]; do sleep 0.05; done"},
    ]
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    started = ramherd.start("run", "-", "--pen", ramherd.pen, stdin=text)
    await_(lambda: started.err.read_text().count("start ") == 2, "two have started")
    with locked(ramherd.state / "ramherd/ramherd.db") as pid:
        go.touch()
        await_(lambda: says_who_locked(started.err.read_text(), pid), "it is told", 5)
        await_(lambda: not ours("RAMHERD_RUN"), "both end")
    assert started.wait() == 1
    listed = ramherd.run("jobs", "--all", "--json").stdout.splitlines()
    states = {job["name"]: job["state"] for job in map(json.loads, listed)}
    expected = {"a": "failed", "b": "done", "c": "done"}
    losses(
        "the store of a herd is locked for a while",
        states=sum(states[name] != state for name, state in expected.items()),
    )


def test_a_lock_for_good_does_not_keep_a_herd(ramherd: Ramherd, losses: Losses) -> None:
    """Ctrl-C ends it with its summary; a new herd is refused within seconds, or interrupted."""
    line = '{"name": "a", "command": "sleep 60"}\n'
    flags = ("run", "-", "--json", "--grace", "1s", "--pen", ramherd.pen)
    started = ramherd.start(*flags, stdin=line)
    await_(lambda: ours("RAMHERD_RUN"), "it runs")
    with locked(ramherd.state / "ramherd/ramherd.db") as pid:
        began = time.monotonic()
        refused = ramherd.run(*flags, stdin=line)
        assert (refused.returncode, says_who_locked(refused.stderr, pid)) == (3, True), (
            refused.stderr
        )
        assert time.monotonic() - began < 10
        started.signal(signal.SIGINT)
        assert started.wait() == 130
        summary = json.loads(started.out.read_text())
        assert says_who_locked(summary["store_error"], pid)
    losses("Ctrl-C while the store is locked for good", left=len(ours("RAMHERD_RUN")))
