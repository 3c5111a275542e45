"""`ramherd.run` and `ramherd.run_async`: in threads and event loops, and what ends them."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import pytest

import ramherd
from integration.conftest import Ramherd, await_, ours
from integration.service.conftest import Service, service  # noqa: F401 - a fixture
from ramherd.client.herd_result import HerdResult, JobResult
from ramherd.core.agent_task import SAID

TRUE = {"command": ["true"]}


@pytest.fixture
def here(ramherd: Ramherd, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process has a store of its own."""
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "RAMHERD_RUNTIME_DIR"):
        monkeypatch.setenv(name, ramherd.env[name])
    monkeypatch.setenv("RAMHERD_MAX_CPU_PRESSURE", "none")
    monkeypatch.setenv("RAMHERD_GRACE", "1s")
    return ramherd.state.parent


def sleeper(started: Path) -> ramherd.Job:
    return ramherd.Job(name="sleeper", command=f"touch {started}; exec sleep 600")


def is_ended() -> bool:
    return not ours()


def test_results_are_typed(here: Path) -> None:
    """A job that fails is a result, not an exception."""
    jobs = [
        ramherd.Job(name="good", command=["echo", "hello"], memory_limit=1 << 30),
        {"name": "bad", "command": "exit 3", "cwd": here},
    ]
    result = ramherd.run(jobs, budget="1GiB", max_parallel=2)

    assert (result.jobs, result.done, result.failed, result.ok) == (2, 1, 1, False)
    assert (result["good"].ok, result["bad"].exit_code) == (True, 3)
    assert result["good"].log is not None
    assert result["good"].log.read_text() == "hello\n"
    assert result.supervisor is not None
    assert result.supervisor.rss_peak_bytes
    with pytest.raises(KeyError):
        result["none"]


def test_the_names_of_the_result_are_those_of_the_json(ramherd: Ramherd) -> None:
    """A script gets every field that `run --json` prints."""
    summary = ramherd.json([TRUE])
    # Two of the fixture, and the time of each hold, which is for benchmarks.
    for name in ("exit_code", "lines", "holds"):
        del summary[name]

    assert set(summary) <= {field.name for field in fields(HerdResult)}
    assert set(summary["results"][0]) <= {field.name for field in fields(JobResult)}
    assert set(SAID) <= {field.name for field in fields(JobResult)}


def test_threads_run_herds_side_by_side(here: Path) -> None:
    """No signal handler is set in the caller: a thread could not."""
    before = signal.getsignal(signal.SIGINT)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _number: ramherd.run([TRUE]), range(2)))

    assert [one.ok for one in results] == [True, True]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_event_loop_goes_on_while_a_herd_runs(here: Path) -> None:
    """Two herds at a time in one loop, which is not the loop of the main thread."""

    async def main() -> list[bool]:
        both = await asyncio.gather(ramherd.run_async([TRUE]), ramherd.run_async([TRUE]))
        return [one.ok for one in both]

    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.extend(asyncio.run(main())))
    thread.start()
    thread.join()

    assert found == [True, True]


def test_a_cancelled_task_leaves_nothing_running(here: Path) -> None:
    """The runs have ended when the cancellation has."""

    async def main() -> None:
        task = asyncio.create_task(ramherd.run_async([sleeper(here / "started")]))
        while not (here / "started").exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert is_ended()

    asyncio.run(main())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_caller_that_ends_takes_its_herd_along(here: Path, number: signal.Signals) -> None:
    """By Ctrl-C, as an exception; by TERM and KILL, which Python code does not see."""
    code = f"import ramherd; ramherd.run([{sleeper(here / 'started')!r}])"
    caller = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    await_((here / "started").exists, "the job runs")
    os.kill(caller.pid, number)
    caller.wait()

    await_(is_ended, "its runs have ended")


@pytest.mark.parametrize(
    ("jobs", "settings", "message", "hint"),
    [
        ([], {}, "there are no jobs to run", "write a job like"),
        (["fix it"], {}, "job 1 is of type str, not a dict", "write a job like"),
        ([{"command": {1}}], {}, "job 1 cannot be written as JSON", ""),
        ([{"comand": "x"}], {}, "jobs: job 1 (job-1) has an unknown key", "did you mean 'command'"),
        ([TRUE], {"budgt": "2GiB"}, "unknown setting 'budgt'", "did you mean 'budget'"),
        ([TRUE], {"budget": "2 apples"}, "--budget: size '2 apples'", "use KiB"),
        ([TRUE], {"cwd": "/nowhere"}, "'/nowhere' is not a directory", ""),
    ],
)
def test_a_mistake_is_an_error_with_a_hint(
    here: Path, jobs: list[ramherd.Job], settings: dict[str, str], message: str, hint: str
) -> None:
    """Before anything starts, and of the class that the command line has for it."""
    with pytest.raises(ramherd.UsageError) as caught:
        ramherd.run(jobs, **settings)  # type: ignore[arg-type]

    assert message in str(caught.value)
    assert hint in caught.value.hint


def test_a_store_that_cannot_be_used_has_its_own_error(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The class that the program raised, not one for all."""
    (here / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "file"))

    with pytest.raises(ramherd.StoreError, match="cannot make"):
        ramherd.run([TRUE])


def test_a_program_that_is_killed_is_an_error(here: Path) -> None:
    """And not a result without jobs."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(ramherd.run, [sleeper(here / "started")])
        await_((here / "started").exists, "the job runs")
        for pid in find_programs():
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(ramherd.RamherdError, match="SIGKILL"):
            running.result()
    await_(is_ended, "its keeper has ended the runs")


def find_programs() -> list[int]:
    found = []
    for pid in ours():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--json" in words:
            found.append(pid)
    return found


def test_the_service_runs_the_jobs_if_there_is_one(
    service: Service,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With `own`, the program does it itself. The result has the same fields."""
    for name, value in service.ramherd.env.items():
        monkeypatch.setenv(name, value)
    by_service, by_itself = ramherd.run([TRUE]), ramherd.run([TRUE], own=True)

    assert (by_service.service, by_itself.service) == (True, False)
    assert by_service.ok
    assert by_itself.ok
