"""The values of a frame, read from a real store, a real service and this machine."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import Ramherd, Started, await_, make_ramherd, pens
from integration.service.conftest import Service
from ramherd.core.errors import RamherdError
from ramherd.top import job_actions
from ramherd.top.reading import Reading
from ramherd.top.source import TopSource, load_top_config

SLEEPER = {"command": ["sleep", "60"]}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ramherd:
    """This process has the directories of the test, like the ramherd that it starts."""
    made = make_ramherd(tmp_path, pens()[0])
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "RAMHERD_RUNTIME_DIR"):
        monkeypatch.setenv(name, made.env[name])
    return made


@pytest.fixture
def source(own: Ramherd) -> Iterator[TopSource]:
    assert own
    made = TopSource(load_top_config())
    yield made
    made.close()


@pytest.fixture
def service(own: Ramherd) -> Iterator[Service]:
    made = Service(own)
    made.start()
    yield made
    if made.process.poll() is None:
        made.stop()


def names(jobs: object) -> list[str]:
    return [job["name"] for job in jobs]  # type: ignore[attr-defined]


def await_reading(source: TopSource, condition: object, what: str) -> Reading:
    found: list[Reading] = []

    def is_there() -> bool:
        found[:] = [source.read()]
        return bool(condition(found[0]))  # type: ignore[operator]

    await_(is_there, what)
    return found[0]


def test_a_machine_without_a_store_or_service(source: TopSource, own: Ramherd) -> None:
    """The memory is that of the machine; nothing is created."""
    reading = source.read()

    assert reading.memory.total_bytes > 0
    assert reading.problems == ()
    assert reading.service.snapshot is None
    assert not own.state.exists()


def test_the_jobs_of_a_ramherd_run_are_shown_without_a_service(
    source: TopSource, own: Ramherd
) -> None:
    """From the store, which the run creates, with the samples that the supervisor writes."""
    assert source.read().live == ()
    jobs = [{"name": "long", **SLEEPER}, {"name": "next", **SLEEPER}]
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    run: Started = own.start("run", "-", "--max-parallel", "1", "--grace", "1s", stdin=text)
    try:
        reading = await_reading(source, lambda one: one.live and one.waiting, "a run and a waiter")
        assert names(reading.live) == ["long"]
        assert names(reading.waiting) == ["next"]
        assert await_reading(source, lambda one: one.memory.used_bytes, "used memory").live
    finally:
        run.signal(signal.SIGINT)
        run.wait()
    ended = await_reading(source, lambda one: not one.live, "the end")
    assert {job["state"] for job in ended.ended} == {"cancelled"}


def test_a_service_that_is_killed_is_shown_and_found_again(
    source: TopSource, service: Service
) -> None:
    """Its queued jobs wait for it meanwhile."""
    service.client.submit([{"name": "long", **SLEEPER}])
    reading = await_reading(source, lambda one: one.live and one.samples, "the run")
    assert reading.service.snapshot is not None
    assert reading.live[0]["grant_bytes"] > 0
    service.kill()
    lost = await_reading(source, lambda one: one.service.problem, "the loss")
    assert "ramherd up" in lost.service.problem or "reported nothing" in lost.service.problem
    service.start()
    back = await_reading(
        source,
        lambda one: one.service.snapshot is not None and not one.service.problem,
        "the return",
    )
    assert names(back.live) == ["long"]
    service.client.cancel(back.live[0]["id"])
    await_reading(source, lambda one: not one.live, "the end")


def test_the_actions_reach_the_service(source: TopSource, service: Service) -> None:
    """Pause, resume, cancel, retry and recycle, as the verbs do; a refusal is one sentence."""
    jobs = [
        {"name": "first", **SLEEPER},
        {"name": "second", "command": ["false"], "after": ["first"]},
    ]
    service.client.submit(jobs)
    reading = await_reading(source, lambda one: one.live and one.waiting, "a run and a waiter")
    first, second = reading.live[0], reading.waiting[0]

    assert job_actions.pause(second) == "second is paused"
    await_reading(source, lambda one: one.waiting[0]["paused_s"], "the pause")
    assert job_actions.resume(second) == "second is no longer paused"
    assert job_actions.pause_all() == "the service is paused: no job starts"
    await_reading(source, lambda one: one.paused_s is not None, "the pause of the service")
    assert job_actions.resume_all() == "the service starts jobs again"
    assert job_actions.recycle(first).startswith("first is being restarted")
    await_reading(source, lambda one: one.live and one.live[0]["attempts"] == 2, "another run")
    assert job_actions.cancel(first) == "first is being cancelled"
    ended = await_reading(source, lambda one: len(one.ended) == 2, "the end of both")
    assert not ended.waiting
    with pytest.raises(RamherdError, match="has ended"):
        job_actions.cancel(first)
    assert job_actions.retry(first) == "first is queued again"
    await_reading(source, lambda one: names(one.live) == ["first"], "the retry")
    job_actions.cancel(first)
    await_reading(source, lambda one: not one.live, "the end")


def test_without_a_service_a_retry_says_what_to_type(own: Ramherd) -> None:
    """The verb would run the job itself, on our screen."""
    assert own
    with pytest.raises(RamherdError, match="no service is running"):
        job_actions.retry({"number": 7, "id": "x", "name": "a", "denied": None})
