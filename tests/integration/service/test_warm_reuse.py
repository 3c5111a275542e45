"""Warm processes in the service: shared while it lives, gone with it."""

from pathlib import Path

import pytest

from integration.conftest import await_, ours
from integration.service.conftest import Service
from integration.supervisor.test_warm_reuse import Herd, causes


@pytest.fixture
def herd(service: Service, tmp_path: Path) -> Herd:
    return Herd(service.ramherd, tmp_path)


def submit(service: Service, herd: Herd, *prompts: str) -> str:
    jobs = [herd.job(prompt, agent_program=str(herd.program)) for prompt in prompts]
    for before, job in enumerate(jobs[1:], 1):
        job["after"] = [f"job-{before}"]
    return service.submit(*jobs)


def pids(service: Service, herd: str) -> set[str]:
    results = service.client.summary(herd)["results"]
    assert [one["state"] for one in results] == ["done"] * len(results), service.said
    return {one["result"].split()[0] for one in results}


def test_jobs_share_a_process_over_herds(service: Service, herd: Herd) -> None:
    """It waits for the next one; when the service ends nothing of it is left."""
    first = submit(service, herd, "one", "two")
    service.client.wait(first)
    second = submit(service, herd, "three")
    service.client.wait(second)

    found = pids(service, first) | pids(service, second)
    assert len(found) == 1
    assert service.stop() == 0
    await_(lambda: not ours(), "the process that waited is gone")


def test_a_process_that_waits_does_not_outlive_a_killed_service(
    service: Service, herd: Herd
) -> None:  # fmt: skip
    """The keeper closes its stdin; the next service starts another."""
    first = submit(service, herd, "one")
    service.client.wait(first)
    service.kill()
    await_(lambda: not ours("RAMHERD_RUN"), "it ends by itself")
    service.start()
    second = submit(service, herd, "two")
    service.client.wait(second)

    assert pids(service, first) != pids(service, second)


def test_a_process_that_nobody_wants_is_let_go(service: Service, herd: Herd) -> None:
    """After `reuse_idle`, and it is said."""
    service.stop()
    service.start("--reuse-idle", "0.2s")
    service.client.wait(submit(service, herd, "one"))
    await_(lambda: not ours("RAMHERD_RUN"), "it ends")

    assert causes(herd.events()) == ["idle"]


def test_a_job_gets_the_process_that_holds_its_memory(service: Service, herd: Herd) -> None:
    """There is no room for another one beside it: it goes on in the one that waits."""
    service.stop()
    service.start("--budget", "300MiB", "--reuse-size", "1GiB")
    first = submit(service, herd, "grow")
    service.client.wait(first)
    second = submit(service, herd, "next")
    service.client.wait(second)

    assert pids(service, first) == pids(service, second)


def test_a_service_that_is_killed_while_a_warm_job_works(service: Service, herd: Herd) -> None:
    """The process goes on with its prompt, and ends: nobody is there to give it another."""
    first = submit(service, herd, "one", "slow")
    await_(lambda: service.job("job-2")["state"] == "running", "the second job")
    service.kill()
    service.start()
    service.client.wait(first)

    assert len(pids(service, first)) == 1
    results = service.client.summary(first)["results"]
    assert [one["result"].partition(" ")[2] for one in results] == ["one", "slow"]
    await_(lambda: not ours("RAMHERD_RUN"), "it ends")
