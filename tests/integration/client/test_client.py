"""`ramherd.Client`: where it finds a service, how long it waits, and when its events end."""

import time
from pathlib import Path

import pytest

import ramherd
from integration.service.conftest import Service, service  # noqa: F401 - a fixture
from ramherd.client import client as module
from ramherd.system.unix_socket import listen

SLEEPS = {"name": "sleeper", "command": ["sleep", "600"]}


def test_the_events_of_a_herd_end_with_it(service: Service) -> None:  # noqa: F811
    """The loop of the documentation ends, and the result is typed."""
    herd = service.submit({"name": "a", "command": "true"}, {"name": "b", "command": "exit 4"})
    kinds = [event["kind"] for event in service.client.events(herd=herd)]
    result = service.client.result(herd)

    assert (kinds[0], kinds[-1]) == ("herd_submitted", "herd_ended")
    assert (result.done, result.failed, result["b"].exit_code) == (1, 1, 4)


def test_events_after_the_last_one_end_too(
    service: Service,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client that has read everything does not wait for an event that does not come."""
    herd = service.submit({"command": "true"})
    service.client.wait(herd)
    monkeypatch.setattr(module.Client, "_read_event_stream", refuse_stream)
    monkeypatch.setattr(module, "ASK_EVERY_S", 0.01)

    assert list(service.client.events(service.client.last_event(), herd)) == []


def refuse_stream(*_asked: object) -> None:
    raise ramherd.ServiceBusy("no more streams")


def test_a_path_is_the_socket_or_its_directory(service: Service) -> None:  # noqa: F811
    """As text or as a path; a directory without a service is named."""
    for path in (service.socket, service.socket.parent, str(service.socket.parent)):
        assert ramherd.Client(path).snapshot()["runs"] == []
    with pytest.raises(ramherd.NoService, match=r"it has no api\.sock"):
        ramherd.Client(service.ramherd.state)


def test_waiting_takes_no_longer_than_asked(service: Service) -> None:  # noqa: F811
    """The herd goes on: only the caller stops waiting."""
    herd = service.submit(SLEEPS)
    service.await_state("sleeper", "running")
    job = service.job("sleeper")["id"]
    for wait in (
        lambda: service.client.wait(herd, timeout_s=0.3),
        lambda: list(service.client.events(herd=herd, timeout_s=0.3)),
        lambda: list(service.client.logs(job, follow=True, timeout_s=0.3)),
    ):
        with pytest.raises(ramherd.WaitTimeout, match=r"within 0\.3 s"):
            wait()
    assert service.state("sleeper") == "running"
    service.client.cancel_herd(herd)


def test_a_service_that_stays_away_is_an_error(
    service: Service,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And not a loop that never ends."""
    monkeypatch.setattr(module, "COMES_BACK_S", 0.5)
    herd = service.submit(SLEEPS)
    events = service.client.events(herd=herd)
    assert next(events)["kind"] == "herd_submitted"
    service.kill()

    with pytest.raises(ramherd.NoService, match=r"has not come back for 0\.5 s"):
        list(events)
    service.start()
    service.client.cancel_herd(herd)


def test_a_service_that_is_silent_is_an_error(tmp_path: Path) -> None:
    """It accepts, and never answers."""
    with listen(tmp_path / "api.sock"):
        begun_s = time.monotonic()
        with pytest.raises(ramherd.NoService, match=r"has not answered for 0\.2 s"):
            ramherd.Client(tmp_path, timeout_s=0.2).herds()
    assert time.monotonic() - begun_s < 60


def test_a_log_that_is_followed_may_be_silent(service: Service) -> None:  # noqa: F811
    """The timeout is for a service that does not answer, not for a job that prints nothing."""
    service.submit({"name": "late", "command": "sleep 4; echo late"})
    service.await_state("late", "running")
    client = ramherd.Client(service.socket, timeout_s=2)

    assert b"".join(client.logs(service.job("late")["id"], follow=True)) == b"late\n"
