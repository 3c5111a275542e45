"""`ramherd up` and what is asked of it, with real processes."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from integration.conftest import await_, make_ramherd, ours
from integration.service.conftest import Service, read_json
from ramherd.core.errors import NoService
from ramherd.system.procfs import read_process

SLEEP = "echo begun; sleep 300"


def agents() -> list[int]:
    return ours("RAMHERD_RUN")


def shells() -> set[int]:
    """The first processes of runs. What they start comes and goes, and is a shell until it has
    executed its program.
    """
    found = (proc for pid in agents() if (proc := read_process(pid)) is not None)
    named = {proc.pid: proc.ppid for proc in found if proc.name == "sh"}
    return {pid for pid, parent in named.items() if parent not in named}


def wait_for(here: Path) -> str:
    """A command that goes on when the file is there, and ends with 7."""
    return f"echo before; while ! [ -e {here}/go ]; do sleep 0.02; done; echo after; exit 7"


def test_a_herd_runs_to_its_end(service: Service) -> None:
    """In the environment of who submitted it; what it came to is told and kept."""
    service.ramherd.env["OF_THE_USER"] = "yes"
    herd = service.submit(
        {"name": "a", "command": "echo $OF_THE_USER $RAMHERD_ATTEMPT"},
        {"name": "b", "command": "exit 3", "after": ["a"]},
        {"name": "c", "command": "true", "after": ["b"]},
    )
    found = service.client.wait(herd)

    assert found["counts"] == {"done": 1, "failed": 1, "cancelled": 1}
    assert b"".join(service.client.logs(service.job("a")["id"])) == b"yes 1\n"
    assert service.job("b")["runs"][0]["exit_code"] == 3


def test_runs_go_on_when_the_service_is_killed(each_service: Service, tmp_path: Path) -> None:
    """The next one adopts them: the same process, all of its output, its exit code."""
    herd = each_service.submit({"name": "a", "command": wait_for(tmp_path)})
    each_service.await_state("a", "running")
    before = await_(shells, "the agent is there")
    each_service.kill()
    assert shells() == before
    each_service.start()
    assert "adopted 1 run that continued meanwhile" in each_service.said
    (tmp_path / "go").touch()
    each_service.client.wait(herd)

    job = each_service.job("a")
    assert [(run["end"], run["exit_code"]) for run in job["runs"]] == [("failed", 7)]
    assert b"".join(each_service.client.logs(job["id"])) == b"before\nafter\n"


def test_what_ends_while_no_service_is_there_counts(each_service: Service, tmp_path: Path) -> None:
    """The keeper has written it down, and is gone by the time that anybody asks."""
    herd = each_service.submit({"name": "a", "command": wait_for(tmp_path)})
    await_(agents, "the agent is there")
    each_service.kill()
    (tmp_path / "go").touch()
    await_(lambda: not ours(), "agent and keeper end by themselves")
    each_service.start()
    each_service.client.wait(herd)

    assert "1 run ended meanwhile" in each_service.said
    assert [run["exit_code"] for run in each_service.job("a")["runs"]] == [7]


def test_with_the_keeper_dead_too_jobs_run_again_resumed(
    each_service: Service, tmp_path: Path
) -> None:
    """Nothing of the first runs is left by then."""
    command = f"echo $RAMHERD_RESUMED >> {tmp_path}/starts; exec sleep 300"
    each_service.submit({"name": "a", "command": command})
    await_((tmp_path / "starts").exists, "it has started")
    first = set(agents())
    keepers = each_service.keepers()
    each_service.kill()
    for pid in keepers:
        os.kill(pid, signal.SIGKILL)
    each_service.start()
    await_(lambda: (tmp_path / "starts").read_text() == "\n1\n", "it runs again, resumed")

    assert not first & set(agents())
    assert [run["end"] for run in each_service.job("a")["runs"]] == ["lost", None]


def test_a_keeper_that_dies_costs_no_job(each_service: Service) -> None:
    """The service starts another, and the jobs again."""
    each_service.submit({"name": "a", "command": SLEEP})
    await_(agents, "it runs")
    (keeper,) = each_service.keepers()
    os.kill(keeper, signal.SIGKILL)
    await_(lambda: len(each_service.job("a")["runs"]) == 2, "it runs again")
    assert each_service.state("a") in ("running", "queued")


def test_libraries_that_are_missing_are_one_line(tmp_path: Path) -> None:
    """With the command that installs them; nothing was started."""
    code = (
        "import sys; from importlib import util; find = util.find_spec; "
        "util.find_spec = lambda name: None if name == 'uvicorn' else find(name); "
        "from ramherd.cli.main import call; sys.exit(call(['up']))"
    )
    env = make_ramherd(tmp_path, "polling").env
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "ramherd: the API needs uvicorn, which" in done.stderr
    assert "-m pip install starlette uvicorn" in done.stderr


def test_an_api_that_hangs_is_replaced(service: Service) -> None:
    """Commands that ask it meanwhile get their answer from the next one; on a busy machine, where
    that takes longer than a command waits, one line.
    """
    herd = service.submit({"name": "a", "command": SLEEP})
    service.await_state("a", "running")
    (api,) = [pid for pid in ours() if is_api(pid)]
    os.kill(api, signal.SIGSTOP)
    done = service.ramherd.run("jobs", "--herd", herd, "--json")

    if done.returncode == 0:
        assert json.loads(done.stdout)["name"] == "a"
    else:
        assert done.returncode == 3, done.stderr
        assert "ramherd service" in done.stderr
    await_(lambda: answers(service, herd), "the next one answers")
    assert "ramherd: the API hung for 4 s, and is started again" in service.said
    assert api not in ours()
    assert service.state("a") == "running"


def is_api(pid: int) -> bool:
    return b"api/__main__.py" in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_dead_api_is_started_again(service: Service) -> None:
    """And the service has gone on meanwhile."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in ours()}
    (api,) = [pid for pid, command in commands.items() if b"api/__main__.py" in command]
    os.kill(api, signal.SIGKILL)
    await_(lambda: answers(service), "the API is back")
    service.client.wait(service.submit({"name": "a", "command": "true"}))


def answers(service: Service, *herds: str) -> bool:
    """With these herds."""
    try:
        return [found["herd"] for found in service.client.herds()] == [*herds]
    except NoService:
        return False


def test_one_service_for_each_user(service: Service) -> None:
    """The second names the first; the lock of a dead service is free."""
    second = service.ramherd.run("up")
    assert second.returncode == 2
    assert f"pid {service.process.pid}" in second.stderr
    service.kill()
    service.start()


def test_a_job_is_cancelled_wherever_it_stands(service: Service) -> None:
    """Running, queued behind a pause, or waiting; with its process gone."""
    herd = service.submit(
        {"name": "runs", "command": SLEEP}, {"name": "waits", "command": "true", "after": ["runs"]}
    )
    await_(agents, "it runs")
    service.client.pause()
    service.submit({"name": "queued", "command": "true"})
    assert service.ramherd.run("cancel", "runs", "queued").returncode == 0
    for name in ("runs", "waits", "queued"):
        service.await_state(name, "cancelled")
    await_(lambda: not agents(), "its process ends")
    assert service.client.herd(herd)["ended_s"] is not None
    assert "has ended" in service.ramherd.run("cancel", "runs").stderr


def test_a_pause_starts_nothing_and_outlives_the_service(service: Service) -> None:
    """What runs goes on; resume starts the rest."""
    service.submit({"name": "a", "command": SLEEP})
    await_(agents, "it runs")
    assert service.ramherd.run("pause").returncode == 0
    service.submit({"name": "b", "command": "true"})
    service.kill()
    service.start()
    await_(lambda: service.client.snapshot().get("pid") == service.process.pid, "it publishes")
    assert (service.state("a"), service.state("b")) == ("running", "queued")
    assert service.ramherd.run("resume").returncode == 0
    service.await_state("b", "done")


def test_a_failed_job_is_retried_and_a_running_one_recycled(
    service: Service, tmp_path: Path
) -> None:
    """A retry counts on; a recycled run is told that it goes on."""
    herd = service.submit({"name": "a", "command": f"test -e {tmp_path}/go"})
    service.client.wait(herd)
    (tmp_path / "go").touch()
    assert service.ramherd.run("retry", "a").returncode == 0
    service.await_state("a", "done")
    assert "nothing to retry" in service.ramherd.run("retry", "a").stderr
    command = f"echo $RAMHERD_RESUMED >> {tmp_path}/starts; exec sleep 300"
    service.submit({"name": "b", "command": command})
    await_((tmp_path / "starts").exists, "it runs")
    assert service.ramherd.run("recycle", "b").returncode == 0
    await_(lambda: (tmp_path / "starts").read_text() == "\n1\n", "it goes on")
    assert [run["end"] for run in service.job("b")["runs"]] == ["recycled", None]


def test_a_run_that_was_being_ended_when_the_service_died_counts_as_that(
    each_service: Service, tmp_path: Path
) -> None:
    """Cancelled, not failed, though nobody saw how it ended; and recycled goes on."""
    for name in ("a", "b"):
        command = f"trap 'sleep 0.3; exit 1' TERM; echo >> {tmp_path}/{name}; sleep 300 & wait"
        each_service.submit({"name": name, "command": command})
        await_((tmp_path / name).exists, "it runs")
    each_service.client.cancel(each_service.job("a")["id"])
    each_service.client.recycle(each_service.job("b")["id"])
    told = "SELECT count(*) FROM events WHERE kind = 'run_stopping'"
    await_(lambda: each_service.rows(told) == [(2,)], "both are told to end")
    each_service.kill()
    await_(lambda: not shells(), "both have ended")
    each_service.start()
    await_(lambda: (tmp_path / "b").read_text() == "\n\n", "b goes on")

    assert each_service.state("a") == "cancelled"
    assert [run["end"] for run in each_service.job("a")["runs"]] == ["cancelled"]
    assert [run["end"] for run in each_service.job("b")["runs"]] == ["recycled", None]


def test_told_to_end_it_puts_its_jobs_back(service: Service) -> None:
    """They are queued, resumed by the next; nothing runs between, and no socket is left."""
    service.submit({"name": "a", "command": SLEEP})
    await_(agents, "it runs")
    assert service.stop() == 0
    assert ours() == []
    assert not service.socket.exists()
    assert service.rows("SELECT state, interrupted FROM jobs") == [("queued", 1)]
    service.start()
    service.await_state("a", "running")


def test_a_drain_waits_for_what_runs(service: Service, tmp_path: Path) -> None:
    """And starts nothing new."""
    service.stop()
    service.start("--drain")
    service.submit({"name": "a", "command": wait_for(tmp_path)})
    await_(agents, "it runs")
    service.process.send_signal(signal.SIGTERM)
    await_(lambda: service.client.snapshot()["draining"], "it drains")
    service.submit({"name": "b", "command": "true"})
    (tmp_path / "go").touch()
    assert service.process.wait(20) == 0
    assert service.rows("SELECT name, state FROM jobs ORDER BY name") == [
        ("a", "failed"), ("b", "queued"),
    ]  # fmt: skip


def test_runs_can_be_left_to_the_next_service(service: Service) -> None:
    """For an upgrade: the very process goes on."""
    service.stop()
    service.start("--leave")
    service.submit({"name": "a", "command": SLEEP})
    before = await_(shells, "it runs")
    assert service.stop() == 0
    assert shells() == before
    service.start()
    assert shells() == before
    assert "adopted 1 run" in service.said


def test_settings_are_read_again(service: Service) -> None:
    """HUP: what is decided next is decided by them."""
    config = Path(service.ramherd.env["XDG_CONFIG_HOME"]) / "ramherd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('budget = "64MiB"\n')
    service.process.send_signal(signal.SIGHUP)
    await_(lambda: service.client.snapshot()["budget_bytes"] == 64 << 20, "the budget is new")
    config.write_text("buget = 1\n")
    service.process.send_signal(signal.SIGHUP)
    await_(lambda: "unknown key 'buget'" in service.said, "a mistake is told, and changes nothing")
    assert service.client.snapshot()["budget_bytes"] == 64 << 20


def test_a_run_follows_what_the_service_does(service: Service) -> None:
    """`ramherd run` submits and follows; --own keeps apart."""
    done = service.ramherd.run("run", "--json", "--", "sh", "-c", stdin="exit 0\nexit 4\n")
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["service"], summary["failed"]) == (1, True, 1)
    assert [result["exit_code"] for result in summary["results"]] == [0, 4]
    lines = service.ramherd.run("run", "--", "printf", stdin="x\n")
    assert lines.stdout == "x"
    assert "1 of 1 job done" in lines.stderr
    own = service.ramherd.run("run", "--own", "--", "echo", stdin="x\n")
    assert "1 of 1 job done" in own.stderr
    assert "by the service" not in own.stderr
    assert [row for (row,) in service.rows("SELECT service FROM herds")] == [1, 1, 0]
    slow_first = ("sh", "-c", "sleep 0.$((9 - 4 * {})); echo out-{}; echo err-{} >&2")
    ordered = service.ramherd.run("run", "-k", "--tag", "--", *slow_first, stdin="1\n2\n")
    assert ordered.stdout == "1-1\tout-1\n2-2\tout-2\n"
    assert "1-1\terr-1\n" in ordered.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_of_who_follows_cancels_the_herd(service: Service, number: signal.Signals) -> None:
    """As it does a herd that runs here; `timeout 60 ramherd run` sends TERM."""
    started = service.ramherd.start("run", "--", "sh", "-c", stdin="sleep 300\n")
    await_(agents, "it runs")
    started.signal(number)
    assert started.wait() == 130
    await_(lambda: not agents(), "its run ends")


def test_jobs_are_listed_with_and_without_a_service(service: Service) -> None:
    """With why each stands as it does."""
    service.submit({"name": "a", "command": SLEEP})
    await_(agents, "it runs")
    assert " 1  a     running" in service.ramherd.run("jobs").stdout
    service.stop()
    found = service.ramherd.run("jobs", "--json").stdout.splitlines()
    assert [(json.loads(line)["name"], json.loads(line)["state"]) for line in found] == [
        ("a", "queued")
    ]
    for verb in (["pause"], ["submit", "--", "echo"]):
        refused = service.ramherd.run(*verb, stdin="x\n")
        assert (refused.returncode, "no ramherd service" in refused.stderr) == (3, True)


def test_a_run_near_its_limit_is_told_and_the_users_command_started(
    service: Service, tmp_path: Path
) -> None:
    """An event, a counter, and `on_alert` with the event in its environment."""
    service.stop()
    service.start("--on-alert", f'echo "$RAMHERD_ALERT" >> {tmp_path}/alerts')
    hold = "x = b'x' * (62 << 20); import time; time.sleep(300)"
    command = [sys.executable, "-S", "-c", hold]
    service.submit({"name": "a", "command": command, "memory_limit": "70MiB"})
    await_((tmp_path / "alerts").exists, "the command has run")
    said = await_((tmp_path / "alerts").read_text, "and said it")
    assert json.loads(said.splitlines()[0])["reason"]["why"] == "near_limit"
    await_(lambda: "ramherd_alerts_total 1\n" in service.client.metrics(), "it is counted")


def test_memory_over_time_outlives_the_service(service: Service) -> None:
    """The first moment is written at once."""
    first, *_ = await_(lambda: service.client.samples()["samples"], "the first sample")
    assert first["total_bytes"] >= first["available_bytes"] > 0

    service.kill()
    service.start()

    assert service.client.samples()["samples"][0] == first


def test_a_store_that_is_locked_for_a_while_costs_nothing(service: Service) -> None:
    """Runs go on, nothing starts, and what ended meanwhile is written when it can be."""
    service.submit({"name": "a", "command": "sleep 1"})
    service.await_state("a", "running")
    path = service.ramherd.state / "ramherd/ramherd.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        await_(lambda: not agents(), "the run ends")
        await_(lambda: "no job starts until this is resolved" in service.said, "it is told")
        assert service.state("a") == "running"
        other.rollback()
    service.await_state("a", "done")


def test_a_store_of_a_newer_ramherd_is_refused(service: Service) -> None:
    """One line, and nothing is touched."""
    service.stop()
    path = service.ramherd.state / "ramherd/ramherd.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO migrations VALUES (99, 0)")
    refused = service.ramherd.run("up")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM migrations WHERE number = 99")
    assert (refused.returncode, "newer ramherd" in refused.stderr) == (3, True)


def test_a_port_that_is_taken_is_one_line(service: Service) -> None:
    """The service ends with it, and leaves nothing."""
    service.stop()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = service.ramherd.run("up", "--port", port, "--pen", service.ramherd.pen)
    assert refused.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_state_that_cannot_be_written_is_one_line(service: Service, tmp_path: Path) -> None:
    """A directory in the place of the store."""
    env = {**service.ramherd.env, "XDG_STATE_HOME": str(tmp_path / "other")}
    env["RAMHERD_RUNTIME_DIR"] = str(tmp_path / "other-runtime")
    (tmp_path / "other/ramherd/ramherd.db").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", "ramherd", "up"], env=env, capture_output=True, text=True,
        check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 3
    assert "cannot use the store" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_the_service_says_of_itself_is_gone_with_it(service: Service) -> None:
    """Nobody reads numbers of a dead one as if they were new."""
    status = service.socket.with_name("status.json")
    assert read_json(status)["pid"] == service.process.pid
    service.stop()
    assert not status.exists()
