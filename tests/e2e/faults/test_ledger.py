"""The ledger: corrupt, removed, truncated, replaced, locked, or of another version under those
who hold leases; and clocks that jump.
"""

import json
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from e2e.faults.conftest import Losses, fill, small_disk
from integration.conftest import Ramherd, Started, await_, make_ramherd, need, ours, pens
from integration.hook.hooks import Session, session
from integration.service.conftest import Service

__all__ = ["session"]  # a fixture: pytest finds it by its name here

WORKER = Path(__file__).with_name("lease_worker.py")
WORKERS, BUDGET = 6, 1 << 33
MIB, GIB = 1 << 20, 1 << 30
# A tick of a supervisor, and what a loaded machine adds to it.
TICK_S, LATE_S = 0.5, 1.0
SLEEP = '{"name": "long", "command": "sleep 60", "memory": "512MiB"}\n'
FEW_DESCRIPTORS = """
import os, resource, sys
from pathlib import Path
from ramherd.core.errors import StoreUnavailable
from ramherd.store.ledger import Ask, Ledger
from ramherd.store.owner import OwnerLock
runtime = Path(sys.argv[1])
lock = OwnerLock(runtime)
first = os.open(os.devnull, os.O_RDONLY)
resource.setrlimit(resource.RLIMIT_NOFILE, (first + 1 + int(sys.argv[2]), 4096))
try:
    print(Ledger(runtime / "ledger.db", runtime, lock.owner).ask(Ask(1), 1 << 30))
except StoreUnavailable as error:
    print(error)
lock.close()
"""
LOCK = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("ready", flush=True)
time.sleep(60)
"""


def ledger_of(env: dict[str, str]) -> Path:
    return Path(env["RAMHERD_RUNTIME_DIR"]) / "ledger.db"


def read_leases(path: Path) -> dict[str, int]:
    """Bytes by kind; empty while there is no ledger, or a broken one."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1)) as db:
            found = db.execute("SELECT kind, sum(bytes) FROM leases GROUP BY kind").fetchall()
    except sqlite3.Error:
        return {}
    return {kind: held for kind, held in found if held}


def await_ready(child: "subprocess.Popen[str]") -> None:
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == "ready\n"


@contextmanager
def locked_ledger(path: Path) -> Iterator[int]:
    """By a process of its own; its pid."""
    command = [sys.executable, "-c", LOCK, str(path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        await_ready(child)
        yield child.pid
    finally:
        child.kill()
        child.wait()


def start_run(ramherd: Ramherd, *flags: str, jobs: str = SLEEP) -> Started:
    flags = ("--own", "--json", "--pen", ramherd.pen, "--budget", "1GiB", *flags)
    return ramherd.start("run", "-", *flags, stdin=jobs)


def await_lease(path: Path) -> int:
    """Of a run that has started: until then it has the whole budget."""
    await_(lambda: 0 < read_leases(path).get("run", 0) < 900 * MIB, "it has a lease and runs")
    return read_leases(path)["run"]


def interrupt(run: Started) -> float:
    """Ctrl-C; how long it took."""
    began = time.monotonic()
    run.signal(signal.SIGINT)
    assert run.wait() == 130
    return time.monotonic() - began


def asides(path: Path) -> list[Path]:
    return list(path.parent.glob("*aside*[!-]*"))


# What is done to the file


def overwrite(path: Path) -> None:
    """In place, as a careless program would do it."""
    with path.open("r+b") as file:
        file.write(b"no database at all" * 1000)


def overwrite_with_log(path: Path) -> None:
    """Those who have the file open read noise, in the middle of what they do."""
    for name in (f"{path}-wal", path):
        with open(name, "r+b") as file:
            file.seek(32)
            file.write(os.urandom(1 << 17))


def overwrite_pages(path: Path) -> None:
    """A good header, then noise."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(1 << 16))


def remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def remove_main_file(path: Path) -> None:
    path.unlink(missing_ok=True)


def truncate(path: Path) -> None:
    os.truncate(path, 0)


def replace_by_a_copy(path: Path) -> None:
    """A backup that is put back: the same rows, another file."""
    shutil.copyfile(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


FAULTS = [
    overwrite,
    overwrite_with_log,
    overwrite_pages,
    remove,
    remove_main_file,
    truncate,
    replace_by_a_copy,
]


# Many applications


class Applications:
    """Real processes that ask for leases, and what each believes to have."""

    def __init__(self, runtime: Path, shown: Path) -> None:
        self.runtime, self.shown = runtime, shown
        shown.write_bytes(bytes(8 * WORKERS))
        self.errors = shown.with_suffix(".err").open("a+b")
        self.processes = [self.start(slot) for slot in range(WORKERS)]
        for one in self.processes:
            await_ready(one)

    def start(self, slot: int) -> "subprocess.Popen[str]":
        command = [sys.executable, WORKER, self.runtime, slot, BUDGET, slot, self.shown]
        return subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=self.errors, text=True
        )

    def restart(self, slot: int) -> None:
        """Killed without a word; a newcomer takes its slot."""
        self.kill(slot)
        self.processes[slot] = self.start(slot)
        await_ready(self.processes[slot])

    def kill(self, slot: int) -> None:
        self.processes[slot].kill()
        self.processes[slot].wait()
        with self.shown.open("r+b") as file:
            file.seek(8 * slot)
            file.write(bytes(8))

    def total(self) -> int:
        return sum(struct.unpack(f"{WORKERS}q", self.shown.read_bytes()))

    def close(self) -> None:
        for slot in range(WORKERS):
            self.kill(slot)
        self.errors.close()


def watch_sum(applications: Applications, for_s: float) -> tuple[int, float]:
    """The largest sum, and the longest time without a break that it was above the budget."""
    most, longest_s, over_since = 0, 0.0, None
    until = time.monotonic() + for_s
    while (now := time.monotonic()) < until:
        total = applications.total()
        most = max(most, total)
        over_since = (over_since or now) if total > BUDGET else None
        longest_s = max(longest_s, now - over_since) if over_since else longest_s
        time.sleep(0.002)
    return most, longest_s


def test_the_sum_of_leases_stays_within_the_budget(tmp_path: Path, losses: Losses) -> None:
    """Whatever becomes of the file, and though applications come and are killed meanwhile."""
    rng, seen = random.Random(7), []
    with closing(Applications(tmp_path, tmp_path / "shown")) as applications:
        for fault in FAULTS:
            for newcomer in (True, False):
                fault(tmp_path / "ledger.db")
                if newcomer:
                    applications.restart(rng.randrange(WORKERS))
                seen.append((*watch_sum(applications, 0.4), fault.__name__))
        with locked_ledger(tmp_path / "ledger.db"):
            seen.append((*watch_sum(applications, 0.6), "locked"))
            applications.kill(0)
        with closing(sqlite3.connect(tmp_path / "ledger.db", timeout=5)) as db:
            db.execute("PRAGMA user_version = 700")
        seen.append((*watch_sum(applications, 0.6), "of another version"))
        live = await_(lambda: read_leases(tmp_path / "ledger.db"), "there is a ledger")
        assert [one.poll() for one in applications.processes[1:]] == [None] * (WORKERS - 1)
        errors = (tmp_path / "shown.err").read_text()
    assert "Traceback" not in errors, errors
    assert asides(tmp_path / "ledger.db"), "no corruption was noticed"
    print(*(f"{most / BUDGET:.2f} for {over:.3f} s: {name}" for most, over, name in seen), sep="\n")
    assert max(most for most, _over, _name in seen) > BUDGET // 2, "the test reached nothing"
    assert sum(live.values()) <= BUDGET
    late = [(name, over) for _most, over, name in seen if over > TICK_S]
    losses("the ledger is lost, locked or of another version", times_over_budget=len(late))


# ramherd itself


@pytest.fixture
def holders(
    service: Service, session: Callable[..., Session], tmp_path: Path
) -> Iterator[dict[str, int]]:
    """A service with a job, a session of exec and a hooked session: their leases."""
    path = ledger_of(service.ramherd.env)
    service.submit({"name": "long", "command": "sleep 60", "memory": "512MiB"})
    hooked = session(subagent_memory="128MiB")
    hooked.call("first")
    assert hooked.await_end("first") == {}
    command = [sys.executable, "-m", "ramherd", "exec", "--pen", service.ramherd.pen]
    command += ["--memory", "256MiB", "--", "sleep", "60"]
    with (tmp_path / "exec.err").open("w") as err:
        child = subprocess.Popen(command, env=service.ramherd.env, stderr=err)
    try:
        await_(lambda: set(read_leases(path)) >= {"run", "exec", "subagent"}, "all have leases")
        service.await_state("long", "running")
        await_(lambda: ours("RAMHERD_RUN"), "the programs run")
        yield read_leases(path)
    finally:
        child.terminate()
        child.wait()
        service.client.cancel(service.job("long")["id"])


@pytest.mark.parametrize("fault", [overwrite, remove, truncate])
def test_every_holder_is_in_the_new_ledger_within_a_tick(
    fault: Callable[[Path], None], service: Service, holders: dict[str, int], losses: Losses
) -> None:
    """Service, exec and hooked session; also the session, of which no process runs meanwhile."""
    path = ledger_of(service.ramherd.env)
    fault(path)
    began = time.monotonic()
    lost = await_(lambda: set(read_leases(path)) >= set(holders), "all are in it again")
    took_s = time.monotonic() - began
    assert lost
    assert took_s < TICK_S + LATE_S, took_s
    after = read_leases(path)
    assert after["exec"] == holders["exec"] == 256 * MIB
    assert after["subagent"] == holders["subagent"] == 128 * MIB
    assert service.state("long") == "running"
    assert len(service.job("long")["runs"]) == 1
    losses(
        f"the ledger under service, exec and hook: {fault.__name__}",
        leases=len(set(holders) - set(after)),
    )


def test_a_process_without_descriptors_leaves_the_ledger_alone(
    ramherd: Ramherd, losses: Losses
) -> None:
    """`ulimit -n`: the lease of the run that is there stays, and a newcomer sees it."""
    path = ledger_of(ramherd.env)
    run = start_run(ramherd)
    before = await_lease(path)
    said = ""
    for free in range(5):
        command = [sys.executable, "-c", FEW_DESCRIPTORS, str(path.parent), str(free)]
        done = subprocess.run(command, text=True, capture_output=True, check=True, timeout=60)
        said += done.stdout
    assert "ledger.db: Too many open files" in said
    after = read_leases(path).get("run", 0)
    assert interrupt(run) < 15
    losses(
        "a process cannot open the ledger (ulimit -n)",
        ledgers_set_aside=len(asides(path)), lease_bytes=max(before - after, 0),
    )  # fmt: skip


def test_another_version_is_refused_by_name(ramherd: Ramherd, losses: Losses) -> None:
    """One line with both versions, exit 3; the ledger and the lease in it stay."""
    path = ledger_of(ramherd.env)
    run = start_run(ramherd)
    before = await_lease(path)
    with closing(sqlite3.connect(path, timeout=5)) as db:
        db.execute("PRAGMA user_version = 700")
    other = ramherd.run("run", "-", "--own", "--pen", ramherd.pen, stdin='{"command": "true"}\n')
    session = ramherd.run("exec", "--pen", ramherd.pen, "--", "echo", "hello")
    after = read_leases(path).get("run", 0)
    interrupt(run)
    assert other.returncode == 3, other.stderr
    assert "has format 7, and this ramherd uses format 1" in other.stderr
    assert f"process {run.process.pid} uses it" in other.stderr
    assert (session.returncode, session.stdout) == (0, "hello\n")
    assert "continuing without a lease" in session.stderr
    losses(
        "another version of ramherd finds the ledger",
        ledgers_set_aside=len(asides(path)), lease_bytes=max(before - after, 0),
    )  # fmt: skip


def test_several_that_find_corruption_at_once_make_one_ledger(
    tmp_path: Path, losses: Losses
) -> None:
    """Nobody sets the new file of another one aside."""
    path = tmp_path / "ledger.db"
    extra = 0
    for round_ in range(3):
        remove(path)
        path.touch()
        overwrite(path)
        with closing(Applications(tmp_path, tmp_path / "shown")) as applications:
            watch_sum(applications, 0.15)
            assert [one.poll() for one in applications.processes] == [None] * WORKERS
        extra = len(asides(path)) - round_ - 1
    losses("several find the corruption at the same time", new_ledgers_set_aside=extra)


def test_a_locked_ledger_is_named_and_ctrl_c_works(ramherd: Ramherd, losses: Losses) -> None:
    """A herd that begins names the process that has the lock; exec starts; nothing is lost."""
    path = ledger_of(ramherd.env)
    assert ramherd.run("exec", "--pen", ramherd.pen, "--", "true").returncode == 0
    with locked_ledger(path) as pid:
        began = time.monotonic()
        run = start_run(ramherd)
        await_(lambda: f"locked by process {pid}" in run.err.read_text(), "the cause is named")
        named_s = time.monotonic() - began
        took_s = interrupt(run)
        began = time.monotonic()
        program = ramherd.run("exec", "--pen", ramherd.pen, "--", "echo", "hello")
        exec_s = time.monotonic() - began
        assert "0 B" not in run.err.read_text()
        assert "a bug" not in run.err.read_text()
        refused = ramherd.run(
            "run", "-", "--own", "--no-wait", "--pen", ramherd.pen, stdin='{"command": "true"}\n'
        )
        assert refused.returncode == 3, refused.stderr
        waiting = start_run(ramherd, jobs='{"command": "true"}\n')
        await_(lambda: f"locked by process {pid}" in waiting.err.read_text(), "this one waits")
    assert waiting.wait() == 0, waiting.err.read_text()
    assert (program.stdout, f"locked by process {pid}" in program.stderr) == ("hello\n", True)
    # A start takes 0.3 s, and more on a loaded machine.
    print(f"named after {named_s:.2f} s, Ctrl-C {took_s:.2f} s, exec {exec_s:.2f} s")
    assert named_s < 2 + LATE_S, named_s
    assert took_s < 1 + LATE_S, took_s
    assert exec_s < 2 + LATE_S, exec_s
    summary = json.loads(waiting.out.read_text())
    losses("the ledger is locked while herds begin", failed_jobs=summary["failed"])


def test_a_session_gets_its_lease_when_the_lock_is_gone(
    ramherd: Ramherd, tmp_path: Path, losses: Losses
) -> None:
    """It began without one, and asks until it has it."""
    path = ledger_of(ramherd.env)
    assert ramherd.run("exec", "--pen", ramherd.pen, "--", "true").returncode == 0
    command = [sys.executable, "-m", "ramherd", "exec", "--pen", ramherd.pen]
    command += ["--memory", "256MiB", "--", "sleep", "60"]
    with locked_ledger(path), (tmp_path / "err").open("w") as err:
        child = subprocess.Popen(command, env=ramherd.env, stderr=err)
        await_(lambda: "continuing without a lease" in (tmp_path / "err").read_text(), "it begins")
        await_(lambda: ours("RAMHERD_RUN"), "its program runs")
    began = time.monotonic()
    try:
        await_(lambda: read_leases(path).get("exec"), "it has a lease")
        took_s, held = time.monotonic() - began, read_leases(path)["exec"]
    finally:
        child.terminate()
        child.wait()
    assert took_s < TICK_S + LATE_S
    losses("the ledger is locked while a session begins", lease_bytes=256 * MIB - held)


def test_a_locked_ledger_stops_no_service(service: Service, losses: Losses) -> None:
    """Jobs go on and start within the lease it has; a service that adopts runs preempts none."""
    path = ledger_of(service.ramherd.env)
    for name in ("a", "b", "c"):
        service.submit({"name": name, "command": "sleep 5; exit 0", "memory": "64MiB"})
    for name in ("a", "b", "c"):
        service.await_state(name, "running")
    with locked_ledger(path) as pid:
        await_(lambda: f"locked by process {pid}" in service.said, "the cause is named", 5)
        service.submit({"name": "small", "command": "true", "memory": "1MiB"})
        service.await_state("small", "done")
        service.kill()
        service.start()
        await_(lambda: "no job starts until this is resolved" in service.said, "nothing starts", 5)
    for name in ("a", "b", "c"):
        service.await_state(name, "done")
    runs = [len(service.job(name)["runs"]) for name in ("a", "b", "c")]
    losses("the ledger is locked under a service", runs_repeated=sum(runs) - 3)


def test_a_full_runtime_directory_loses_no_lease(tmp_path: Path, losses: Losses) -> None:
    """A herd that runs goes on, one that begins waits with the reason, and a session starts."""
    with small_disk(tmp_path / "runtime", "size=500k,mode=700"):
        ramherd = make_ramherd(tmp_path, pens()[0])
        path = ledger_of(ramherd.env)
        run = start_run(ramherd)
        before = await_lease(path)
        fill(path.parent / "filler")
        text = '{"name": "late", "command": "true"}\n'
        command = [sys.executable, "-m", "ramherd", "run", "-", "--own", "--json"]
        with (tmp_path / "late.err").open("w") as err:
            late = subprocess.Popen(
                [*command, "--pen", ramherd.pen], env=ramherd.env, stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=err,
            )  # fmt: skip
        assert late.stdin is not None
        with late.stdin:
            late.stdin.write(text.encode())
        said = "ledger.db: the disk is full: no job starts until this is resolved"
        await_(lambda: said in (tmp_path / "late.err").read_text(), "the cause is named")
        program = ramherd.run("exec", "--pen", ramherd.pen, "--", "echo", "hello")
        assert (program.stdout, "the disk is full" in program.stderr) == ("hello\n", True)
        after = read_leases(path).get("run", 0)
        (path.parent / "filler").unlink()
        assert late.wait(20) == 0, (tmp_path / "late.err").read_text()
        interrupt(run)
        losses(
            "the disk of the runtime directory is full",
            ledgers_set_aside=len(asides(path)), lease_bytes=max(before - after, 0),
        )  # fmt: skip


def test_a_lease_without_an_owner_is_dropped(ramherd: Ramherd, losses: Losses) -> None:
    """With an event; every later herd runs."""
    path = ledger_of(ramherd.env)
    assert ramherd.run("exec", "--pen", ramherd.pen, "--", "true").returncode == 0
    with closing(sqlite3.connect(path)) as db, db:
        row = ("nobody", 3 * GIB, 0, 3 * GIB, "run", "")
        db.execute(
            "INSERT INTO leases (owner, bytes, used_bytes, wants_bytes, kind, key)"
            " VALUES (?, ?, ?, ?, ?, ?)", row,
        )  # fmt: skip
    summary = ramherd.json([{"command": "true"}], "--own")
    assert (summary["exit_code"], summary["done"]) == (0, 1), summary["lines"]
    assert "removed a lease of 3 GiB without an owner from the ledger" in summary["lines"]
    assert "without an owner from the ledger" in ramherd.run("events").stdout
    losses("a lease has no owner", failed_jobs=summary["failed"], leases=len(read_leases(path)))


# Clocks


def at_other_time(ramherd: Ramherd, shift: str) -> Ramherd:
    """Its wall clock is wrong by so much."""
    need("faketime", "faketime")
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    env = {
        **ramherd.env, "LD_PRELOAD": str(library), "FAKETIME": shift,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    return Ramherd(env, ramherd.state, ramherd.pen)


@pytest.mark.parametrize("shift", ["+1d", "-1d"])
def test_a_wall_clock_that_jumps_expires_no_lease(
    shift: str, ramherd: Ramherd, session: Callable[..., Session], losses: Losses
) -> None:
    """Leases of a herd and of a subagent that is about to start stay; that of a dead herd goes."""
    path = ledger_of(ramherd.env)
    hooked = session(subagent_memory="128MiB")
    hooked.call("first")
    hooked.await_end("first")
    run = start_run(ramherd)
    await_lease(path)
    before = read_leases(path)
    assert set(before) >= {"run", "subagent"}
    with ExitStack() as stack:
        later = Session(at_other_time(ramherd, shift).env, hooked.cwd)
        stack.callback(later.close)
        later.ask("SessionStart")
        done = at_other_time(ramherd, shift).run("exec", "--pen", ramherd.pen, "--", "true")
        assert done.returncode == 0, done.stderr
        after = read_leases(path)
        run.process.kill()
        run.wait()
        later.ask("SessionStart")
        assert "run" not in read_leases(path)
    await_(lambda: not ours("RAMHERD_RUN"), "the keeper ends its runs")
    lost = {kind for kind in ("run", "subagent") if after.get(kind, 0) < before[kind]}
    assert ramherd.run("prune").returncode == 0
    losses(f"the wall clock jumps ({shift})", leases=len(lost))


def test_leases_of_another_boot_are_void(ramherd: Ramherd, losses: Losses) -> None:
    """A runtime directory in /tmp outlives a reboot: pids in it may be somebody else's by now."""
    path = ledger_of(ramherd.env)
    run = start_run(ramherd)
    await_(lambda: read_leases(path).get("run"), "it has a lease")
    kept = {file.name: file.read_bytes() for file in path.parent.glob("ledger.db*")}
    (copy,) = (path.parent / "leases").iterdir()
    text = copy.read_text()
    interrupt(run)
    remove(path)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for name, data in kept.items():
        if not name.endswith("-shm"):
            path.with_name(name).write_bytes(data)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE owners SET boot_id = 'another', pid = ?", (os.getpid(),))
    copy.write_text(text.replace(boot_id, "another"))
    assert read_leases(path)
    assert ramherd.run("exec", "--pen", ramherd.pen, "--", "true").returncode == 0
    void = read_leases(path)
    remove(path)
    assert ramherd.run("exec", "--pen", ramherd.pen, "--", "true").returncode == 0
    losses("the machine was booted again", leases_kept=len(void) + len(read_leases(path)))
