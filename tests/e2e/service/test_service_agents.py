"""Real claudes in a service that dies, is started again, and goes on with them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.agent_home import Home, make_home
from e2e.agents.test_run_agents import PARTS, RESUMABLE, asks, herd_of, runs_that_name
from integration.conftest import await_, ours
from integration.service.conftest import Service, finish
from llm import LLM
from ramherd.agents.resume_prompt import GO_ON
from ramherd.system.procfs import read_variable

# The second part waits for a file, whoever is there meanwhile.
GATED = [
    {"shell": "echo first-part"},
    {"shell": "touch in-$RAMHERD_JOB; until [ -e go ]; do sleep 0.05; done; echo second-part"},
    {"say": "Both parts are done."},
]


@contextmanager
def running(home: Home, folder: Path, *flags: str) -> Iterator[Service]:
    made = Service(herd_of(home, folder), flags)
    made.start()
    yield made
    finish(made)


@pytest.fixture
def service(claude: Home, tmp_path: Path) -> Iterator[Service]:
    with running(claude, tmp_path) as made:
        yield made


def agents() -> set[int]:
    """The first process of each run. A tool's `sleep` may have ended since it was found."""
    firsts: dict[str, int] = {}
    for pid in sorted(ours("RAMHERD_RUN")):
        if run := read_variable(pid, "RAMHERD_RUN"):
            firsts.setdefault(run, pid)
    return set(firsts.values())


def test_agents_go_on_while_the_service_is_killed(
    claude: Home, service: Service, llm: LLM
) -> None:  # fmt: skip
    """In the middle of a tool: the same processes, one session each, the whole history."""
    llm.add({"gated": GATED})
    herd = service.submit(*asks(claude, *["do - it [script gated]"] * 2))
    await_(lambda: len(list(claude.cwd.glob("in-*"))) == 2, "both are in their tool", 60.0)
    before = agents()
    service.kill()
    assert agents() == before
    service.start()
    assert "adopted 2 runs that continued meanwhile" in service.said
    (claude.cwd / "go").touch()
    service.client.wait(herd)

    results = service.client.summary(herd)["results"]
    assert [(one["state"], one["runs"]) for one in results] == [("done", 1)] * 2, service.said
    assert [one["result"] for one in results] == ["Both parts are done."] * 2
    assert len({one["session"] for one in results}) == 2
    assert all(one["turns"] >= 3 and one["cost_usd"] > 0 for one in results)
    for talk in llm.of("gated")[-2:]:
        told = " ".join(talk.texts("result"))
        assert "first-part" in told
        assert "second-part" in told
        assert not any(GO_ON in text for text in talk.texts("user"))
    await_(lambda: not ours("RAMHERD_RUN"), "nothing of them is left")


@pytest.mark.parametrize("keeper_dies", [False, True])
@pytest.mark.parametrize("name", RESUMABLE)
def test_an_agent_that_was_cut_off_resumes_over_a_restart(
    name: str, installed: None, tmp_path: Path, llm: LLM, keeper_dies: bool
) -> None:
    """The service is told to end, or dies with its keeper: one session, one history."""
    home = make_home(name, tmp_path, llm.url)
    llm.add({"parts": PARTS})
    with running(home, tmp_path) as service:
        cut_off_and_resume(home, service, llm, keeper_dies=keeper_dies)


def cut_off_and_resume(home: Home, service: Service, llm: LLM, *, keeper_dies: bool) -> None:
    herd = service.submit(*asks(home, "do - it [script parts]"))
    await_((home.cwd / "waiting").exists, "it is in its tool", 60.0)
    if keeper_dies:
        service.kill_with_keepers()
    else:
        assert service.stop() == 0
        await_(lambda: not ours(), "nothing of it is left meanwhile")
    service.start()
    service.client.wait(herd)

    (result,) = service.client.summary(herd)["results"]
    assert (result["state"], result["runs"]) == ("done", 2), service.said
    assert result["result"] == "Both parts are done."
    assert runs_that_name(result["session"], service.ramherd) == 2
    history = llm.of("parts")[-1]
    assert any("first-part" in text for text in history.texts("result"))
    assert any("[script parts]" in text for text in history.texts("user"))
    assert any(GO_ON in text for text in history.texts("user"))


def test_a_busy_api_costs_no_retry_here_either(installed: None, tmp_path: Path, llm: LLM) -> None:
    """codex gives up at once: its job waits, and goes on in the same session."""
    home = make_home("codex", tmp_path, llm.url)
    llm.add({"busy": [{"shell": "echo first-part"}, {"say": "At last.", "fail": {"status": 429}}]})
    with running(home, tmp_path) as service:
        herd = service.submit(*asks(home, "do - it [script busy]"))
        service.client.wait(herd)
        (result,) = service.client.summary(herd)["results"]

    assert (result["state"], result["runs"], result["result"]) == ("done", 2, "At last.")
    assert any("first-part" in text for text in llm.of("busy")[-1].texts("result"))


def test_the_smaller_model_here_too(claude: Home, tmp_path: Path, llm: LLM) -> None:
    """In a budget for one the fallback of the job is asked."""
    models = {"model": "opus", "fallback_model": "haiku"}
    with running(claude, tmp_path, "--budget", "380MiB") as service:
        herd = service.submit(*asks(claude, "do it [script shell]", **models))
        service.client.wait(herd)
        (result,) = service.client.summary(herd)["results"]

    assert (result["state"], result["model"]) == ("done", "haiku")
    assert all("haiku" in talk.asked.model for talk in llm.of("shell"))
