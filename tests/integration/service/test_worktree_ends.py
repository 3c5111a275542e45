"""The worktrees of the service's jobs, over its death."""

from pathlib import Path

import pytest

from integration.agents.shell_agent import Workplace
from integration.agents.test_worktree_ends import ask, last_commit, results, slow_filter
from integration.conftest import await_, need
from integration.service.conftest import Service


@pytest.fixture
def place(service: Service, tmp_path: Path) -> Workplace:
    need("git", "git")
    made = Workplace(tmp_path, service.ramherd.env)
    service.stop()
    service.start()  # with the variables for git
    return made


def test_a_service_that_was_killed_meanwhile_is_followed_by_the_next(
    service: Service, place: Workplace, tmp_path: Path
) -> None:
    """A job after it starts when the worktree is finished, not before."""
    slow_filter(place, tmp_path)
    herd = service.submit(
        ask(place, "a", "echo 1 > slow"), ask(place, "b", "cat slow", after=("a",))
    )
    await_((tmp_path / "adding").exists, "git is in the filter")
    assert (service.job("a")["state"], service.job("b")["state"]) == ("done", "waiting")
    service.kill()
    service.start()
    assert service.job("b")["state"] == "waiting"
    (tmp_path / "go").touch()
    service.client.wait(herd)
    found = results(service.client.summary(herd))

    assert [one["state"] for one in found.values()] == ["done", "done"], found
    assert last_commit(place, "a") == "ramherd: uncommitted changes of a|Ada"
    numbers = ("files_changed", "lines_added", "lines_removed", "left_out", "worktree_note")
    assert [found["a"][key] for key in numbers] == [1, 1, 0, [], None]
    assert (found["b"]["worktree"], found["b"]["files_changed"]) == (None, 0)


def test_a_job_that_is_cancelled_is_committed_and_one_that_is_recycled_is_not(
    service: Service, place: Workplace, tmp_path: Path
) -> None:
    """Only the end of the job counts, not that of a run."""
    work = f"git status --porcelain >> {tmp_path}/seen; echo 1 > new; touch {tmp_path}/at; sleep 60"
    herd = service.submit(ask(place, "a", work), ask(place, "b", "true"))
    await_((tmp_path / "at").exists, "it works")
    (tmp_path / "at").unlink()
    service.client.recycle(service.id_of(herd, "a"))
    await_((tmp_path / "at").exists, "it works again")
    service.client.cancel(service.id_of(herd, "a"))
    service.client.wait(herd)

    assert (tmp_path / "seen").read_text() == "?? new\n"
    assert last_commit(place, "a") == "ramherd: uncommitted changes of a|Ada"
    assert results(service.client.summary(herd))["a"]["files_changed"] == 1
