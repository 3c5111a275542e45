"""The directories of ramherd: removed, linked, read-only, left by the killed."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from e2e.faults.conftest import Losses, need_root
from integration.conftest import Ramherd, await_, make_ramherd, need, ours, pens
from integration.service.conftest import Service, finish
from ramherd.client.client import is_running

JOBS = 24
# A user that no machine has.
OTHER = 54321


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Whatever the permissions: also root cannot write."""
    subprocess.run(["mount", "--bind", path, path], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", path], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def refused(service: Service, **changes: str) -> str:
    """The line with which another `ramherd up` ends."""
    command = [sys.executable, "-m", "ramherd", "up", "--pen", service.ramherd.pen]
    done = subprocess.run(
        command, env={**service.ramherd.env, **changes}, capture_output=True, text=True,
        timeout=20, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    return done.stderr.splitlines()[0]


def test_a_runtime_directory_that_is_removed_is_made_again(
    service: Service, losses: Losses, tmp_path: Path
) -> None:
    """As logind does it at logout. A second service is refused all the while, clients find the
    first again, and every job runs once.
    """
    marks = tmp_path / "marks"
    work = f"echo x >> {marks}; sleep 0.3"
    herd = service.submit(*({"name": f"j{n}", "command": work} for n in range(JOBS)))
    await_(lambda: ours("RAMHERD_RUN"), "the first jobs run")
    runtime = service.socket.parent
    for _again in range(2):
        shutil.rmtree(runtime)
        assert refused(service) == (
            f"ramherd: a service of yours is running already (pid {service.process.pid}), "
            f"with {service.ramherd.state}/ramherd"
        )
        await_(lambda: is_running(service.socket), "the socket is there again", 3)
    assert runtime.stat().st_mode & 0o777 == 0o700
    assert service.ramherd.run("submit", "--", "true", stdin="x\n").returncode == 0
    ended = service.client.wait(herd)
    assert f"{runtime} was removed or moved: its files were created again" in service.said
    started = len(marks.read_text().splitlines())
    await_((runtime / "status.json").exists, "the status is published there")
    await_(lambda: list((runtime / "owners").iterdir()), "the owner's lock is there")
    losses(
        "the runtime directory is removed twice, another service is started",
        failed_jobs=JOBS - ended["counts"].get("done", 0), runs_repeated=started - JOBS,
    )  # fmt: skip


def test_a_second_service_is_refused_wherever_its_runtime_directory_is(
    service: Service, losses: Losses, tmp_path: Path
) -> None:
    """The lock is the store's; and the runtime directory has one too, for `api.sock`."""
    elsewhere = str(tmp_path / "elsewhere")
    pid = f"(pid {service.process.pid})"
    lines = [
        refused(service, RAMHERD_RUNTIME_DIR=elsewhere),
        refused(service, XDG_STATE_HOME=elsewhere),
    ]
    losses("another runtime directory, the same store", services=sum(pid not in _ for _ in lines))


def test_of_services_that_start_at_once_one_runs(tmp_path: Path, losses: Losses) -> None:
    """Each of the others names it, though their runtime directories differ."""
    ramherd = make_ramherd(tmp_path, pens()[0])
    command = [sys.executable, "-m", "ramherd", "up", "--pen", ramherd.pen]
    started = [
        subprocess.Popen(
            command, env={**ramherd.env, "RAMHERD_RUNTIME_DIR": str(tmp_path / f"runtime-{n}")},
            stderr=subprocess.PIPE, text=True,
        )
        for n in range(3)
    ]  # fmt: skip
    await_(lambda: sum(one.poll() is not None for one in started) == 2, "two have ended")
    (first,) = [one for one in started if one.returncode is None]
    lines = [one.communicate()[1] for one in started if one is not first]
    assert first.stderr is not None
    assert any("ramherd: up, " in line for line in first.stderr), "it is up, and ends by TERM"
    first.terminate()
    said = first.communicate(timeout=20)[1]
    assert first.returncode == 0, said
    named = sum(f"running already (pid {first.pid})" in line for line in lines)
    losses("three services are started at once", unnamed=2 - named)


def test_a_keeper_is_adopted_without_a_runtime_directory(
    service: Service, losses: Losses, tmp_path: Path
) -> None:
    """Service dead, runtime directory gone: the runs go on, and the next service adopts them."""
    go = tmp_path / "go"
    wait = f"while ! [ -e {go} ]; do sleep 0.05; done; exit 5"
    service.submit({"name": "a", "command": wait})
    service.await_state("a", "running")
    await_(lambda: ours("RAMHERD_RUN"), "it runs")
    service.kill()
    shutil.rmtree(service.socket.parent)
    service.start()
    assert "adopted 1 run that continued meanwhile" in service.said
    go.touch()
    await_(lambda: service.state("a") == "failed", "it ends")
    runs = service.job("a")["runs"]
    losses(
        "the service is killed and the runtime directory removed",
        runs_lost=sum(run["exit_code"] != 5 for run in runs), runs_repeated=len(runs) - 1,
    )  # fmt: skip


def test_the_token_of_the_port_stays_the_same(tmp_path: Path, losses: Losses) -> None:
    """What was set up with it goes on: the port stays open, the token is written again."""
    service = Service(make_ramherd(tmp_path, pens()[0]), ("--port", "0"))
    service.start()
    token = service.socket.parent / "token"
    before = token.read_text()
    shutil.rmtree(token.parent)
    await_(token.exists, "it is written again", 3)
    await_(token.read_text, "all of it")
    assert token.stat().st_mode & 0o777 == 0o600
    lost = int(token.read_text() != before)
    finish(service)
    losses("the runtime directory with the token is removed", tokens=lost)


def test_a_herd_goes_on_without_its_runtime_directory(
    ramherd: Ramherd, losses: Losses, tmp_path: Path
) -> None:
    """`ramherd run` makes it again, with its lock and its lease."""
    lines = "".join(json.dumps({"name": f"j{n}", "command": "sleep 1"}) + "\n" for n in range(4))
    herd = ramherd.start(
        "run", "-", "-v", "--pen", ramherd.pen, "--own", "--max-parallel", "2", stdin=lines
    )
    await_(lambda: len(ours("RAMHERD_RUN")) >= 2, "two run")
    runtime = tmp_path / "runtime"
    shutil.rmtree(runtime)
    await_((runtime / "ledger.db").exists, "the ledger is there again", 3)
    await_(lambda: list((runtime / "owners").iterdir()), "so is the lock")
    code = herd.wait()
    assert "was removed or moved" in herd.out.read_text() + herd.err.read_text()
    assert not list((runtime / "owners").iterdir())
    losses("the runtime directory is removed under ramherd run", failed_herds=int(code != 0))


def test_the_state_directory_may_be_a_link(
    ramherd: Ramherd, losses: Losses, tmp_path: Path
) -> None:
    """To a directory of ours on another disk, say."""
    target = tmp_path / "elsewhere"
    target.mkdir(0o700)
    ramherd.state.mkdir()
    (ramherd.state / "ramherd").symlink_to(target)
    done = ramherd.run("run", "--pen", ramherd.pen, "--own", "--", "true", stdin="x\n")
    assert (target / "ramherd.db").exists()
    losses("the state directory is a link", failed_herds=int(done.returncode != 0))


@pytest.mark.parametrize("name", ["ramherd.db", "ramherd.db-wal", "service.lock"])
def test_a_planted_link_is_not_followed(
    ramherd: Ramherd, losses: Losses, tmp_path: Path, name: str
) -> None:
    """One line says which file it is; where it leads to, nothing is made or written."""
    planted = ramherd.state / "ramherd" / name
    planted.parent.mkdir(0o700, parents=True)
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    planted.symlink_to(victim)
    done = ramherd.run("up", "--pen", ramherd.pen)
    assert done.returncode == 3, done.stderr
    line = done.stderr.splitlines()[0]
    assert f"{planted}: it is a symbolic link to {victim}, which is not followed" in line
    planted.unlink()
    losses(f"{name} is a planted link", files_changed=int(victim.read_bytes() != b"precious"))


def test_a_store_of_another_user_is_not_opened(ramherd: Ramherd, losses: Losses) -> None:
    """One line says whose it is."""
    need_root("give a file away")
    store = ramherd.state / "ramherd/ramherd.db"
    store.parent.mkdir(0o700, parents=True)
    store.touch()
    os.chown(store, OTHER, OTHER)
    done = ramherd.run("run", "--pen", ramherd.pen, "--own", "--", "true", stdin="x\n")
    assert done.returncode == 3, done.stderr
    assert f"{store}: it belongs to uid {OTHER}, not to uid 0" in done.stderr.splitlines()[0]
    changed = store.stat().st_size
    store.unlink()
    losses("ramherd.db belongs to another user", bytes_changed=changed)


def killed_herd(ramherd: Ramherd, jobs: int = 1) -> int:
    """The pid of a `ramherd run` that was killed, whose jobs are over by now."""
    lines = "".join(
        json.dumps({"name": f"j{n}", "command": "echo hello; sleep 60"}) + "\n"
        for n in range(jobs)
    )  # fmt: skip
    herd = ramherd.start("run", "-", "--pen", ramherd.pen, "--own", "--grace", "0.2s", stdin=lines)
    await_(lambda: len(ours("RAMHERD_RUN")) >= jobs, "they run")
    herd.process.kill()
    herd.process.wait()
    await_(lambda: not ours(), "the keeper ends them")
    return herd.process.pid


def test_jobs_of_a_killed_herd_do_not_run(ramherd: Ramherd, losses: Losses) -> None:
    """`jobs` says what is so before anybody has recorded it, and what clears it."""
    killed_herd(ramherd, 2)
    shown = ramherd.run("jobs").stdout
    assert shown.count("its ramherd died (ramherd run --resume)") == 2
    assert shown.splitlines()[-1].startswith("2 lost; herd ")
    jobs = [json.loads(line) for line in ramherd.run("jobs", "--json").stdout.splitlines()]
    assert [(job["owner_lost"], job["reason"]["why"]) for job in jobs] == [(True, "owner_lost")] * 2
    assert ramherd.run("prune").returncode == 0
    cleared = ramherd.run("jobs", "--all").stdout.splitlines()[-1]
    losses("kill -9 of ramherd run", jobs_said_to_run=shown.count(" running "))
    assert cleared.startswith("2 cancelled; herd ")


def test_the_api_says_so_too(service: Service, losses: Losses) -> None:
    """A service lists the herds of `ramherd run` as well, and does not run them."""
    options = ("--pen", service.ramherd.pen, "--own", "--grace", "0.2s")
    line = json.dumps({"name": "j0", "command": "sleep 60"})
    herd = service.ramherd.start("run", "-", *options, stdin=f"{line}\n")
    await_(lambda: ours("RAMHERD_RUN"), "it runs")
    before = [job["owner_lost"] for job in service.client.jobs()]
    herd.process.kill()
    herd.process.wait()
    await_(lambda: not ours("RAMHERD_RUN"), "the keeper ends it")
    (job,) = service.client.jobs()
    assert (before, job["reason"]["why"]) == ([False], "owner_lost")
    assert service.client.herd(job["herd"])["owner_lost"]
    assert service.ramherd.run("prune").returncode == 0
    assert [job["owner_lost"] for job in service.client.jobs()] == [False]
    losses("kill -9 of ramherd run beside a service", jobs_said_to_run=int(not job["owner_lost"]))


def test_kills_leave_no_locks(ramherd: Ramherd, losses: Losses, tmp_path: Path) -> None:
    """The next start removes what each of the killed left in `owners/`."""
    owners = tmp_path / "runtime/owners"
    for _kill in range(3):
        killed_herd(ramherd)
    assert len(list(owners.iterdir())) <= 2
    ramherd.run("run", "--pen", ramherd.pen, "--own", "--", "true", stdin="x\n")
    losses("three kills of ramherd run", files_left=len(list(owners.iterdir())))


READERS = (
    ("jobs", "--all"), ("logs", "j0"), ("events",), ("history",), ("ps",), ("doctor",), ("config",),
)  # fmt: skip


def read_all(run: Callable[..., "subprocess.CompletedProcess[str]"]) -> int:
    """How many of the verbs that only read have failed."""
    failed = 0
    for verb in READERS:
        done = run(*verb)
        assert "Traceback" not in done.stderr
        assert "a bug" not in done.stderr
        expected = (0, 1) if verb == ("doctor",) else (0,)  # it may find something wrong
        failed += done.returncode not in expected
        if verb[0] == "logs":
            assert done.stdout == "hello\n", done.stderr
        if verb[0] == "jobs":
            assert "lost" in done.stdout or "cancelled" in done.stdout, done.stdout
    return failed


@pytest.mark.parametrize("cleared", [False, True], ids=["after a kill", "closed"])
def test_verbs_that_only_read_need_no_right_to_write(
    ramherd: Ramherd, losses: Losses, *, cleared: bool
) -> None:
    """The state directory is on a disk that is read-only: with the log of a killed ramherd, whose
    changes are shown, and without one.
    """
    need_root("mount a disk read-only")
    killed_herd(ramherd)
    if cleared:
        assert ramherd.run("prune").returncode == 0
        assert not (ramherd.state / "ramherd/ramherd.db-wal").exists()
    with read_only(ramherd.state):
        failed = read_all(ramherd.run)
        refused = ramherd.run("run", "--pen", ramherd.pen, "--own", "--", "true", stdin="x\n")
        assert (refused.returncode, "Traceback" in refused.stderr) == (3, False), refused.stderr
    losses("the state directory is read-only", verbs_that_fail=failed)


def test_another_users_state_is_read_where_it_is_readable(ramherd: Ramherd, losses: Losses) -> None:
    """The directory and all in it is another user's, open to all. Nothing is changed in it."""
    need_root("give files away")
    drop = [need("setpriv", "util-linux"), "--inh-caps=-all", "--bounding-set=-all"]
    killed_herd(ramherd)
    files = [ramherd.state / "ramherd", *(ramherd.state / "ramherd").rglob("*")]
    for path in files:
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.chown(path, OTHER, OTHER)

    def run_without_rights(*verb: str) -> "subprocess.CompletedProcess[str]":
        """root without capabilities may do what any user may."""
        return subprocess.run(
            [*drop, sys.executable, "-m", "ramherd", *verb], env=ramherd.env,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    failed = read_all(run_without_rights)
    refused = run_without_rights("prune")
    assert refused.returncode == 3, refused.stderr
    place = f"{ramherd.state}/ramherd belongs to uid {OTHER}, not to root (uid 0)"
    assert refused.stderr.startswith(f"ramherd: {place}")
    changed = [*(ramherd.state / "ramherd").rglob("*")] != files[1:]
    for path in files:
        os.chown(path, 0, 0)
    ramherd.run("prune")
    losses("another user's state directory", verbs_that_fail=failed, changes=int(changed))


LOGGED_IN = """
mount -t tmpfs tmpfs /run/user && mkdir -m 700 /run/user/0 &&
mkdir -p -m 700 /tmp/ramherd-0 && mount -t tmpfs -o mode=700 tmpfs /tmp/ramherd-0 && exec "$@"
"""


def test_a_service_is_found_after_logout_and_login(tmp_path: Path, losses: Losses) -> None:
    """logind takes /run/user/UID away, and gives another one later. The directory is the one that
    is right at that time, for the service as for all that look for it. Its mounts are its own.
    """
    need_root("have mounts of its own")
    is_ours = not Path("/tmp/ramherd-0").exists()
    ramherd = make_ramherd(tmp_path, pens()[0])
    del ramherd.env["RAMHERD_RUNTIME_DIR"]
    up = [sys.executable, "-m", "ramherd", "up", "--pen", ramherd.pen, "--grace", "1s"]
    apart = [need("unshare", "util-linux"), "-m", "sh", "-c", LOGGED_IN, "sh"]
    err = tmp_path / "up.err"
    with err.open("a") as log:
        process = subprocess.Popen([*apart, *up], env=ramherd.env, stderr=log)
    inside = ["nsenter", "-t", str(process.pid), "-m"]

    def run(*command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*inside, *command], env=ramherd.env, text=True, capture_output=True, check=False,
            timeout=30, input='{"command": "true"}\n',
        )  # fmt: skip

    def is_up_in(place: str) -> bool:
        return f"ramherd: up, {place}/api.sock" in err.read_text()

    lost = 0
    await_(lambda: is_up_in("/run/user/0/ramherd"), "it is up")
    for change, place in (
        ("rm -r /run/user/0", "/tmp/ramherd-0"),
        ("mkdir -m 700 /run/user/0", "/run/user/0/ramherd"),
    ):
        err.write_text("")
        assert run("sh", "-c", change).returncode == 0
        await_(partial(is_up_in, place), f"it is in {place}: {err.read_text()}", 5)
        done = run(sys.executable, "-m", "ramherd", "submit", "-", "--wait")
        lost += int(done.returncode != 0)
        assert (run("ls", place + "/ledger.db").returncode, done.stderr.count("hint")) == (0, 0)
    process.terminate()
    assert process.wait(20) == 0, err.read_text()
    await_(lambda: not ours(), "all of it ends")
    if is_ours:
        Path("/tmp/ramherd-0").rmdir()
    losses("logout and login under a service", submissions=lost)
