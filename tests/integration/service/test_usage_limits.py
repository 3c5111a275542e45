"""A service whose agents are at the limit of their plan, or have no access to their API."""

import time
from pathlib import Path
from typing import Any

from integration.agents.test_usage_limits import program as program  # noqa: PLC0414 - a fixture
from integration.conftest import await_
from integration.service.conftest import Service
from llm import LLM
from llm.usage import UsageWindows

LOCKED = {"locked": [{"fail": {"status": 401, "times": 1000}}]}


def ask(llm: LLM, program: str, name: str, folder: Path, **keys: Any) -> dict[str, Any]:
    """Each address is another account."""
    env = {"ANTHROPIC_BASE_URL": llm.url, "ANTHROPIC_API_KEY": "none"}
    given = {"agent": "claude", "prompt": "do it", "agent_program": program, "memory": "20MiB"}
    return {"name": name, "cwd": str(folder), "env": env, **given, **keys}


def test_a_limit_outlives_the_service(service: Service, program: str, tmp_path: Path) -> None:
    """Jobs of the account wait, also for the next service; others do not. A retry asks at once."""
    usage = UsageWindows(length_s=3600, quota=1)
    with LLM(usage=usage) as llm, LLM() as free:
        service.submit(ask(llm, program, "first", tmp_path))
        service.await_state("first", "done")
        service.submit(ask(llm, program, "refused", tmp_path))
        await_(lambda: service.job("refused")["reason"]["why"] == "usage_limit", "it is refused")
        service.submit(
            ask(llm, program, "behind", tmp_path), ask(free, program, "other", tmp_path),
            {"name": "command", "command": ["true"], "cwd": str(tmp_path)},
        )  # fmt: skip
        service.await_state("other", "done")
        service.await_state("command", "done")
        for name in ("refused", "behind"):
            job = service.job(name)
            assert (job["state"], job["reason"]["why"]) == ("queued", "usage_limit")
            assert job["reason"]["until_at"] == usage.reset_s(0)
        assert "usage limit until " in service.ramherd.run("jobs").stdout
        (run,) = service.job("refused")["runs"]
        assert (run["end"], service.job("refused")["failures"]) == ("preempted", 0)
        service.stop()
        service.start()
        time.sleep(1.5)
        assert (len(usage.refused), service.job("behind")["attempts"]) == (1, 0)

        usage.quota = 9
        assert service.ramherd.run("retry", "behind").returncode == 0
        service.await_state("behind", "done")
        service.await_state("refused", "done")
    assert len(usage.refused) == 1


def test_no_access_does_not_burn_the_queue(service: Service, program: str, tmp_path: Path) -> None:
    """One job has asked; all wait, with the words of the API; after a login one retry is enough."""
    with LLM(LOCKED) as llm:
        jobs = [
            ask(llm, program, f"job-{n}", tmp_path, prompt="x [script locked]") for n in range(4)
        ]
        service.submit(*jobs)
        await_(lambda: service.job("job-3")["reason"]["why"] == "no_access", "it is refused")
        time.sleep(1.0)
        attempts = [service.job(f"job-{n}")["attempts"] for n in range(4)]
        assert max(attempts) == 1, "those that ran at the time were refused, and no more"
        assert "API Error: 401" in service.job("job-3")["reason"]["what"]
        llm.add({"locked": [{"say": "Done."}]})
        assert service.ramherd.run("retry", "job-2").returncode == 0
        for n in range(4):
            service.await_state(f"job-{n}", "done")


def test_a_herd_for_later(service: Service, tmp_path: Path) -> None:
    """It waits in the service, whoever is in charge, and starts by the wall clock."""
    began_s = time.time()
    told = service.ramherd.run(
        "submit", "--in", "3s", "-", stdin='{"name": "a", "command": "true"}'
    )
    assert told.returncode == 0, told.stderr
    job = service.job("a")
    assert (job["state"], job["reason"]["why"]) == ("queued", "start_at")
    assert "starts at" in service.ramherd.run("jobs").stdout
    service.await_state("a", "done")
    ((started_s,),) = service.rows("SELECT started_s FROM runs")
    assert started_s - began_s >= 3.0
    refused = service.ramherd.run("submit", "--at", "25:00", "-", stdin="")
    assert (refused.returncode, "--at '25:00' is not a time of day" in refused.stderr) == (2, True)
