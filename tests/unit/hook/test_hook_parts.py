"""The small parts of the hook, and that they say what their large counterparts say."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ramherd.config.load import load_config
from ramherd.core.errors import UsageError
from ramherd.core.model import Limit, Machine
from ramherd.core.policies import Policy
from ramherd.decide.budget import budget_bytes
from ramherd.decide.governor.subagent_slots import Verdict
from ramherd.decide.shares import budget_of
from ramherd.exec.room import BUDGET_SHARE
from ramherd.hook import notified as once
from ramherd.hook import room
from ramherd.hook import subagent_sizes as learned
from ramherd.hook.caller import is_wrapper
from ramherd.hook.messages import deny
from ramherd.hook.sessions_table import SessionView, render_sessions
from ramherd.hook.settings import FIELDS, PARSERS, SUBAGENT_MEMORY_BYTES, read_settings
from ramherd.measure.cgroups import Trees, read_limits
from ramherd.store.subagent_rows import Size

MIB = 1 << 20
TEXTS = {
    "budget": "3GiB", "max_parallel": "5", "max_parallel_session": "2", "subagent_memory": "64MiB",
    "hook_wait": "90s", "hook_sweep": "no", "on_subagent_stop": "notify-send done",
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory below one with settings, and none of this machine's."""
    for name in PARSERS:
        monkeypatch.delenv(f"RAMHERD_{name.upper()}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/ramherd").mkdir(parents=True)
    (tmp_path / "project/below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project/below")
    return tmp_path / "project"


def both(name: str, project: Path) -> tuple[Any, Any]:
    small = read_settings(str(project / "below"))
    assert small.problems == []
    return getattr(small, FIELDS.get(name, name)), load_config(argparse.Namespace())[name]


@pytest.mark.parametrize("name", PARSERS)
def test_settings_are_those_of_ramherd_config(
    name: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default, in the user's file, in the project's above that, and in the environment."""
    small, large = both(name, project)
    assert small == large
    (project.parent / "config/ramherd/config.toml").write_text(f'{name} = "{TEXTS[name]}"')
    small, large = both(name, project)
    assert small == large
    if name not in ("hook_sweep", "on_subagent_stop"):
        (project / "ramherd.toml").write_text(f'{name} = "7"')
    small, large = both(name, project)
    assert small == large
    monkeypatch.setenv(f"RAMHERD_{name.upper()}", TEXTS[name])
    small, large = both(name, project)
    assert small == large


@pytest.mark.parametrize("text", ["0", "-1", "three", "1.5", "true"])
def test_what_is_no_number_for_one_is_none_for_both(text: str, project: Path) -> None:
    """As TOML, where a switch is no number either."""
    (project / "ramherd.toml").write_text(
        f"max_parallel = {text}" if text != "three" else 'max_parallel = "three"'
    )
    assert len(read_settings(str(project)).problems) == 1
    with pytest.raises(UsageError):
        load_config(argparse.Namespace())


def test_a_project_may_not_have_commands_run(project: Path) -> None:
    """To open somebody's repository must not be enough for that."""
    (project / "ramherd.toml").write_text('on_subagent_stop = "./evil"')
    found = read_settings(str(project))
    assert found.on_subagent_stop is None
    assert "a project may not have commands run" in found.problems[0]


@pytest.mark.parametrize("alias", ["maxParallelSubagents", "max-concurrent"])
def test_names_that_people_bring_are_understood(alias: str, project: Path) -> None:
    """In files, as everywhere."""
    (project / "ramherd.toml").write_text(f"{alias} = 3")
    assert both("max_parallel", project) == (3, 3)


def test_wrong_settings_are_left_out_and_said(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its place; keys of others are none of its business."""
    (project / "ramherd.toml").write_text('budget = "much"\nlog_head = 3\nmax_parallel = 0')
    monkeypatch.setenv("RAMHERD_HOOK_WAIT", "soon")
    found = read_settings(str(project))
    assert (found.budget_bytes, found.max_parallel, found.hook_wait_s) == (None, None, 600.0)
    assert [problem.rpartition("/")[2].split(":")[0] for problem in found.problems] == [
        "ramherd.toml", "ramherd.toml", "environment",
    ]  # fmt: skip
    (project / "ramherd.toml").write_text("budget = ")
    assert "Invalid value" in read_settings(str(project)).problems[0]


def test_the_budget_is_the_same_for_hooks_and_herds() -> None:
    """One rule; the cap of an application comes after it."""
    machine = Machine(1000 * MIB, 600 * MIB, (Limit(700 * MIB, 300 * MIB),))
    sizes = [(1000 * MIB, 400 * MIB), (700 * MIB, 300 * MIB)]
    for fleet in (0, 100 * MIB, 350 * MIB):
        ours = min(budget_of(size, used, fleet, BUDGET_SHARE) for size, used in sizes)
        assert ours == budget_bytes(machine, fleet, Policy())


def test_limits_are_read_as_the_sampler_reads_them(tmp_path: Path) -> None:
    """Of both kinds of cgroups, from our own up to the mount, without page cache."""
    v1, v2 = tmp_path / "v1/own", tmp_path / "v2/own"
    for at, limit in ((v1, 500 * MIB), (v1.parent, 1 << 62)):
        at.mkdir(parents=True, exist_ok=True)
        (at / "memory.limit_in_bytes").write_text(f"{limit}\n")
        (at / "memory.usage_in_bytes").write_text(f"{90 * MIB}\n")
        stat = f"cache 5\ntotal_inactive_file {20 * MIB}\ntotal_active_file {MIB}\n"
        (at / "memory.stat").write_text(stat)
    for at, text in ((v2, "max"), (v2.parent, str(300 * MIB))):
        at.mkdir(parents=True, exist_ok=True)
        (at / "cgroup.procs").touch()
        (at / "memory.max").write_text(f"{text}\n")
        (at / "memory.stat").write_text(f"anon {7 * MIB}\nfile 99\nslab 30\nsock 4\nshmem 12\n")
    own, paths = {"memory": str(v1), "cgroup2": str(v2)}, {"memory": "/a/own", "cgroup2": "/b/own"}
    small = room.read_limits(own, paths)
    large = read_limits(Trees({"memory": v1}, v2))
    assert [size[:2] for size in small] == [(one.limit_bytes, one.used_bytes) for one in large]
    assert [size[2:] for size in small] == [("memory", "/a/own"), ("cgroup2", "/b")]


def test_who_lives_under_a_limit() -> None:
    """This process does, below the root and at its own place, and not below another."""
    (tree, path), *_others = room.read_paths("self").items()
    pid = os.getpid()
    assert room.is_below(pid, Size(1, 0, tree, path))
    assert room.is_below(pid, Size(1, 0, tree, "/"))
    assert not room.is_below(pid, Size(1, 0, tree, f"{path.rstrip('/')}x/other"))


def test_what_never_fits_is_known(tmp_path: Path) -> None:
    """The smallest limit counts, and the cap."""
    sizes = [Size(1000 * MIB, 0), Size(500 * MIB, 0)]
    assert room.largest_bytes(sizes, None) == 400 * MIB
    assert room.largest_bytes(sizes, 100 * MIB) == 100 * MIB


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/bin/sh", "-c", "/usr/bin/python3 -P -m ramherd.hook 60 || true"], True),
        (["-bash", "-c", "python -m ramherd.hook"], True),
        (["/bin/bash"], False),
        (["claude", "-p", "look at ramherd.hook"], False),
        (["node", "cli.js", "--settings", "ramherd.hook"], False),
        ([""], False),
    ],
)
def test_only_the_shell_that_calls_us_is_passed_over(words: list[str], expected: bool) -> None:
    """A session may well have our name in its words."""
    assert is_wrapper("\0".join(words).encode()) is expected


def past(most: int) -> dict[str, Any]:
    return {"most_bytes": most, "agent": "a"}


def test_learned_memory_is_bounded(tmp_path: Path) -> None:
    """So many projects, so many of each; the oldest are forgotten."""
    for number in range(learned.PROJECTS + 5):
        learned.learn(str(tmp_path), f"/project/{number}", past(1))
    for _time in range(learned.RECENT + 5):
        learned.learn(str(tmp_path), "/project/5", past(1))
    known = learned.read(str(tmp_path))
    assert len(known) == learned.PROJECTS
    assert "/project/4" not in known
    assert list(known)[-1] == "/project/5"
    assert len(known["/project/5"]) == learned.RECENT
    assert [path.name for path in tmp_path.iterdir()] == [learned.NAME]


def test_the_estimate_follows_those_that_held_most(tmp_path: Path) -> None:
    """With a margin, never below the least, and only from enough of them."""
    state = str(tmp_path)
    for most in (10 * MIB, 200 * MIB, 20 * MIB):
        learned.learn(state, "/p", past(most))
    assert learned.estimate_bytes(state, "/p") is None
    learned.learn(state, "/p", past(0))
    assert learned.estimate_bytes(state, "/p") == 250 * MIB
    for _time in range(learned.RECENT):
        learned.learn(state, "/p", past(MIB))
    assert learned.estimate_bytes(state, "/p") == learned.LEAST_BYTES < SUBAGENT_MEMORY_BYTES


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"/p": 3}', '{"/p": [{"most": 1}]}'])
def test_a_file_that_is_not_understood_is_learned_anew(text: str, tmp_path: Path) -> None:
    """It is no reason to stop anybody."""
    (tmp_path / learned.NAME).write_text(text)
    assert learned.estimate_bytes(str(tmp_path), "/p") is None
    learned.learn(str(tmp_path), "/p", past(MIB))
    assert len(json.loads((tmp_path / learned.NAME).read_text())["/p"]) == 1


def test_each_session_is_told_once(tmp_path: Path) -> None:
    """Until it ends; a session id from outside is no path."""
    runtime = str(tmp_path)
    assert once.is_first(runtime, "s/../1", "text", "Stop")
    assert not once.is_first(runtime, "s/../1", "text", "Stop")
    assert once.is_first(runtime, "s/../1", "another", "Stop")
    assert once.is_first(runtime, "s2", "text", "Stop")
    once.forget(runtime, "s/../1")
    assert len(list((tmp_path / "said").iterdir())) == 1
    once.forget(runtime, "s2")
    assert list(tmp_path.iterdir()) == [tmp_path / "said"]


@pytest.mark.parametrize("why", ["no_room_budget", "somebody_waits", "max_parallel"])
def test_the_model_is_told_what_to_do(why: str) -> None:
    """How much there is, how many run, and what to do instead."""
    answer: Any = deny(Verdict(why, 128 * MIB, 40 * MIB, 2, 5), 600.0)
    text = answer["hookSpecificOutput"]["permissionDecisionReason"]
    assert "after waiting 10m00s" in text
    assert "(2 run in this session, 5 on this machine)" in text
    assert "one at a time" in text
    assert ("40 MiB are free" in text) is (why != "max_parallel")


def test_sessions_are_shown_in_a_line_each() -> None:
    """What is used, what is leased, who runs and who waits."""
    assert list(render_sessions([])) == ["no session with the hook runs"]
    (line,) = render_sessions([SessionView(7, 150 * MIB, 406 * MIB, 2, 6)])
    assert line == "session of pid 7: 150 MiB used, 406 MiB leased; subagents: 2 running, 6 waiting"
