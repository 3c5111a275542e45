"""The directories of ramherd: removed, linked, read-only, left by the killed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from e2e.faults.conftest import Losses
from integration.conftest import Ramherd, await_, make_ramherd, ours, pens
from integration.service.conftest import Service, finish
from ramherd.client.client import is_running

JOBS = 24


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
    assert f"{runtime} was removed or has moved: its files were made again" in service.said
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


def test_a_keeper_is_adopted_without_a_runtime_directory(service: Service, losses: Losses) -> None:
    """Service dead, runtime directory gone: the runs go on, and the next service adopts them."""
    service.submit({"name": "a", "command": "sleep 3; exit 5"})
    service.await_state("a", "running")
    await_(lambda: ours("RAMHERD_RUN"), "it runs")
    service.kill()
    shutil.rmtree(service.socket.parent)
    service.start()
    assert "1 runs went on and are adopted" in service.said
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
        "run", "-", "--pen", ramherd.pen, "--own", "--max-parallel", "2", stdin=lines
    )
    await_(lambda: len(ours("RAMHERD_RUN")) >= 2, "two run")
    runtime = tmp_path / "runtime"
    shutil.rmtree(runtime)
    await_((runtime / "ledger.db").exists, "the ledger is there again", 3)
    await_(lambda: list((runtime / "owners").iterdir()), "so is the lock")
    code = herd.wait()
    assert "was removed or has moved" in herd.out.read_text() + herd.err.read_text()
    assert not list((runtime / "owners").iterdir())
    losses("the runtime directory is removed under ramherd run", failed_herds=int(code != 0))
