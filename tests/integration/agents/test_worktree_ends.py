"""What becomes of the worktrees of a herd: changes are committed when a job has ended for good, and
never in the user's own checkout.
"""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from integration.agents.shell_agent import Workplace
from integration.conftest import Ramherd, await_, make_ramherd, need, ours

# `git commit` stays in this hook for good, with its lock on the index.
HANGING_HOOK = "#!/bin/sh\n[ -z \"$HANG\" ] || { touch '%s'; sleep 600; }\n"


@pytest.fixture
def place(ramherd: Ramherd, tmp_path: Path) -> Workplace:
    need("git", "git")
    return Workplace(tmp_path, ramherd.env)


def ask(place: Workplace, name: str, do: str, **keys: Any) -> Any:
    """A job that commits nothing by itself."""
    return {**place.job(name, **keys), "prompt": f"set -e; {do}"}


def results(summary: dict[str, Any]) -> dict[str, Any]:
    return {one["job"]: one for one in summary["results"]}


def slow_filter(place: Workplace, here: Path) -> None:
    """git adds no file before there is `go`."""
    wait = f"touch {here}/adding; while ! [ -e {here}/go ]; do sleep 0.05; done; cat"
    place.git("config", "filter.slow.clean", wait)
    (place.top / ".gitattributes").write_text("slow* filter=slow\n")
    place.commit("slow")


def last_commit(place: Workplace, name: str) -> str:
    return place.git("log", "-1", "--format=%s|%an", place.branch_of(name))


def test_every_end_of_a_job_is_committed(tmp_path: Path, pen: str) -> None:
    """Done, failed, and killed in the middle of `git commit`; not before a retry. What was not
    changed is removed. The user's checkout is as before.
    """
    need("git", "git")
    ramherd = make_ramherd(tmp_path, pen)
    place = Workplace(tmp_path, ramherd.env)
    (place.top / "file").write_text("the user's own\n")
    before = (place.git("status", "--porcelain"), place.git("rev-parse", "HEAD"))
    hook = place.top / ".git/hooks/pre-commit"
    hook.write_text(HANGING_HOOK % (tmp_path / "committing"))
    hook.chmod(0o755)
    again = "if [ -e new ]; then git status --porcelain > seen; else echo 1 > new; exit 1; fi"
    hang = "echo 1 > new; git add new; HANG=1 git commit -qm own"
    jobs = [
        ask(place, "done", "echo 1 > new; echo k > .env"),
        ask(place, "failed", "echo 1 > new; exit 3"),
        ask(place, "idle", "cat file"),
        ask(place, "again", again, retries=1),
        ask(place, "killed", hang, timeout="3s"),
    ]
    summary = ramherd.json(jobs)
    found = results(summary)

    states = {name: one["state"] for name, one in found.items()}
    assert states == {
        "done": "done", "failed": "failed", "idle": "done", "again": "done", "killed": "failed",
    }, summary["lines"]  # fmt: skip
    for name in ("done", "failed", "again", "killed"):
        assert last_commit(place, name) == f"ramherd: uncommitted changes of {name}|Ada"
        assert found[name]["branch"] == place.branch_of(name)
        assert found[name]["worktree"] == place.worktree_of(name)
        assert found[name]["worktree_note"] is None
    assert (tmp_path / "committing").exists()
    numbers = ("files_changed", "lines_added", "lines_removed")
    assert [found["done"][key] for key in numbers] == [1, 1, 0]
    assert [found["idle"][key] for key in (*numbers, "branch", "worktree")] == [0, 0, 0, None, None]
    assert found["done"]["left_out"] == [{"path": ".env", "why": "may hold secrets"}]
    assert place.git("show", f"{place.branch_of('again')}:seen") == "?? new\n?? seen"
    assert (place.git("status", "--porcelain"), place.git("rev-parse", "HEAD")) == before


def test_after_ctrl_c_what_was_done_is_committed(
    ramherd: Ramherd, place: Workplace, tmp_path: Path
) -> None:
    """A second one does not wait for git: the note says so, and nothing is lost."""
    slow_filter(place, tmp_path)
    jobs = [
        ask(place, "a", f"echo 1 > new; touch {tmp_path}/a; sleep 600"),
        ask(place, "b", f"echo 1 > slow; touch {tmp_path}/b; sleep 600"),
    ]
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    herd = ramherd.start("run", "-", "--json", "--pen", ramherd.pen, "--grace", "1s", stdin=text)
    await_(lambda: (tmp_path / "a").exists() and (tmp_path / "b").exists(), "both work")
    herd.signal(signal.SIGINT)
    await_((tmp_path / "adding").exists, "git is in the filter")
    herd.signal(signal.SIGINT)
    assert herd.wait() == 130
    found = results(json.loads(herd.out.read_text()))

    assert found["b"]["worktree_note"] == "changes were not committed: interrupted"
    assert Path(found["b"]["worktree"], "slow").read_text() == "1\n"
    committed = found["a"]["worktree_note"] is None
    assert committed or Path(found["a"]["worktree"], "new").exists()


def test_a_run_that_was_killed_meanwhile_is_finished_by_the_next(
    ramherd: Ramherd, place: Workplace, tmp_path: Path
) -> None:
    """Whatever that one runs."""
    slow_filter(place, tmp_path)
    jobs = [ask(place, "a", "echo 1 > slow"), ask(place, "b", "true")]
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    herd = ramherd.start("run", "-", "--pen", ramherd.pen, stdin=text)
    await_((tmp_path / "adding").exists, "git is in the filter")
    herd.signal(signal.SIGKILL)
    herd.wait()
    (tmp_path / "go").touch()
    ramherd.json([{"name": "other", "command": "true"}])
    shown = json.loads(ramherd.run("show", "a", "--json").stdout)

    assert last_commit(place, "a") == "ramherd: uncommitted changes of a|Ada"
    assert (shown["branch"], shown["files_changed"]) == (place.branch_of("a"), 1)
    await_(lambda: not ours(), "nothing is left of the first")


def test_a_successor_waits_for_changes_that_cannot_be_committed(
    ramherd: Ramherd, place: Workplace
) -> None:
    """It would not see what it waited for. When its user has committed them, it goes on."""
    rebase = (
        "echo a > file; git commit -qam a; git checkout -q -b other HEAD^; echo b > file; "
        "git commit -qam b; git rebase -q - || true"
    )
    summary = ramherd.json([ask(place, "a", rebase), ask(place, "b", "true", after=("a",))])
    found = results(summary)

    assert (summary["exit_code"], found["b"]["state"]) == (1, "waiting"), summary["lines"]
    assert found["a"]["worktree_note"] == "in the middle of a rebase: left alone"
    assert f"1 file of a not committed in {found['a']['worktree']}" in str(found["b"]["reason"])


def test_worktrees_outlive_the_pruning_of_logs_and_records(
    ramherd: Ramherd, place: Workplace
) -> None:
    """Output goes, jobs stay. With `--older` a job stays that has a worktree; one whose record is
    gone is named, and removed only if nothing was changed in it.
    """
    ramherd.json([ask(place, "a", "echo 1 > new"), ask(place, "b", "true")])
    first = place.worktree_of("a")
    ramherd.run("prune", "--keep", "0")
    ramherd.json([{"name": "c", "command": "true"}], "--log-total", "64KiB")
    listed = ramherd.run("jobs", "--all").stdout
    assert [name in listed for name in (" a ", " b ", " c ")] == [True] * 3, listed
    said = ramherd.run("prune", "--older", "1ms").stdout
    assert "and the records of 2:" in said
    assert "kept the records of 1 job with a worktree: ramherd merge, or ramherd drop" in said
    assert json.loads(ramherd.run("show", "a", "--json").stdout)["worktree"] == first

    unchanged = str(Path(first).with_name("01GONE"))
    place.git("worktree", "add", "-q", "-b", "ramherd/gone", unchanged)
    mark = Path(place.git("rev-parse", "--absolute-git-dir", where=unchanged), "ramherd-made")
    mark.write_text(place.git("rev-parse", "HEAD"))
    moved = str(Path(first).with_name("01MOVED"))
    place.git("worktree", "move", first, moved)
    told = json.loads(ramherd.run("prune", "--json", "--dry-run").stdout)
    assert (told["worktrees_removed"], [one["path"] for one in told["worktrees"]]) == (1, [moved])
    said = ramherd.run("prune").stdout
    assert "removed 1 worktree of no known job, without changes" in said
    branch = place.branch_of("a")
    assert f"a worktree of no known job stays: {moved}: its branch is {branch}" in said
    assert (Path(unchanged).exists(), Path(moved, "new").exists()) == (False, True)
    assert "ramherd/gone" not in place.git("branch")
