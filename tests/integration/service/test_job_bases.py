"""Jobs of the service that start from the branches of others."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.agents.shell_agent import Workplace, git_environment
from integration.conftest import await_, make_ramherd, need, ours, pens
from integration.service.conftest import Service, finish

# Of two branches that both change `file`: it waits, and then takes ours.
SLOW = "touch {here}/merging; while ! [ -e {here}/go ]; do sleep 0.05; done; true"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """With the variables for git."""
    need("git", "git")
    made = Service(make_ramherd(tmp_path, pens()[0]))
    made.ramherd.env |= git_environment(tmp_path)
    made.start()
    yield made
    finish(made)


@pytest.fixture
def place(service: Service, tmp_path: Path) -> Workplace:
    return Workplace(tmp_path, service.ramherd.env)


def merge_slowly(place: Workplace, here: Path) -> None:
    place.git("config", "merge.slow.driver", SLOW.format(here=here))
    (place.top / ".gitattributes").write_text("file merge=slow\n")
    place.commit("slow")


def test_a_conflict_is_resolved_and_retried(
    service: Service, place: Workplace, tmp_path: Path
) -> None:
    """`run` ends with 1 when nothing else is left, and the herd stays open. A retry tries again:
    unsuccessfully first, then the job and its successors go on.
    """
    jobs = [
        place.job("a", "echo a > file"),
        place.job("b", "echo b > file"),
        place.job("my c", "cat file; echo c > c", ("a", "b")),
        place.job("d", "cat c; echo d > d", ("my c",)),
    ]
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
    done = service.ramherd.run("run", str(tmp_path / "jobs.jsonl"))

    tree, branch = place.worktree_of("a"), place.branch_of("b")
    resolve = f"git -C {tree} merge {branch}, then git commit, then ramherd retry"
    sentence = f"a and b conflict in file (resolve it: {resolve}"
    assert done.returncode == 1, done.stderr
    assert f"waiting   my c: {sentence} 'my c')" in done.stdout
    assert "2 of 4 jobs done (2 waiting)" in done.stdout
    assert "merge conflict (ramherd show)" in service.ramherd.run("jobs").stdout
    (herd,) = service.client.herds()
    assert herd["ended_s"] is None
    assert service.client.wait(herd["herd"])["counts"] == {"done": 2, "waiting": 2}

    stuck = "SELECT count(*) FROM events WHERE kind = 'herd_stuck'"
    assert service.ramherd.run("retry", "my c").returncode == 0
    await_(lambda: service.rows(stuck) == [(2,)], "it is tried again")
    assert service.job("my c")["reason"]["why"] == "merge_conflict"
    place.git("merge", "-q", "-s", "ours", "-m", "both", branch, where=tree)
    assert service.ramherd.run("retry", "my c").returncode == 0
    assert service.client.wait(herd["herd"])["counts"] == {"done": 4}
    assert place.files_of("d") == ["c", "d", "file"]
    assert place.git("show", f"{place.branch_of('d')}:file") == "a"
    assert service.client.herd(herd["herd"])["ended_s"] is not None


def test_a_job_that_waits_for_its_user_can_be_cancelled(service: Service, place: Workplace) -> None:
    """With those after it; then the herd is over."""
    herd = service.submit(
        place.job("a", "echo a > file"),
        place.job("b", "echo b > file"),
        place.job("c", "echo c > c", ("a", "b")),
        place.job("d", "echo d > d", ("c",)),
    )
    service.client.wait(herd)
    service.client.cancel(service.id_of(herd, "c"))
    await_(lambda: service.client.herd(herd)["ended_s"], "the herd is over")

    assert service.client.herd(herd)["counts"] == {"done": 2, "cancelled": 2}


def test_a_merge_that_was_interrupted_is_made_again(
    service: Service, place: Workplace, tmp_path: Path
) -> None:
    """Service and git are killed in the middle. Meanwhile other jobs run, and nothing is touched;
    a job that is put back in the queue afterwards goes on in the worktree that it has.
    """
    merge_slowly(place, tmp_path)
    wait = f"[ -e c ] || {{ echo c > c; touch {tmp_path}/working; sleep 60; }}; cat file"
    herd = service.submit(
        place.job("a", "echo a > file"),
        place.job("b", "echo b > file"),
        place.job("c", wait, ("a", "b")),
    )
    await_((tmp_path / "merging").exists, "the branches are merged")
    other = service.submit({"name": "other", "command": "true"})
    assert service.client.wait(other)["counts"] == {"done": 1}
    assert service.job("c")["state"] == "queued"
    service.kill_with_keepers()
    (tmp_path / "go").touch()
    service.start()
    await_((tmp_path / "working").exists, "c is at work")
    assert place.git("log", "-1", "--format=%s", place.branch_of("c")) == "ramherd: merge a and b"
    service.client.recycle(service.id_of(herd, "c"))

    assert service.client.wait(herd)["counts"] == {"done": 3}
    assert place.files_of("c") == [".gitattributes", "c", "file"]
    assert service.job("c")["attempts"] == 2
    await_(lambda: not [pid for pid in ours() if b"merge-tree" in command(pid)], "git is gone")


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_base_that_the_repository_does_not_have_is_refused(
    service: Service, place: Workplace, tmp_path: Path
) -> None:
    """In one line, and nothing is submitted."""
    (tmp_path / "jobs.jsonl").write_text(json.dumps(place.job("a", base="mian")))
    done = service.ramherd.run("submit", str(tmp_path / "jobs.jsonl"))

    assert done.returncode == 2
    assert f"job a, key 'base': {place.top} has no branch, tag or commit 'mian'" in done.stderr
    assert "did you mean 'main'?" in done.stderr
    assert service.client.herds() == []
