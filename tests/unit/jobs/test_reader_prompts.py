"""Jobs for agents: their keys, prompts on the command line, and what would be started."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ramherd.cli.main import call
from ramherd.cli.run import read_given
from ramherd.core.errors import UsageError
from ramherd.core.model import Brief, Job
from ramherd.jobs.reader import Defaults, make_jobs
from support.make import HERD

CLAUDE = Defaults(
    {"agent": "claude", "model": "opus", "fallback_model": "haiku", "skip_permissions": True}
)


def made(defaults: Defaults | None = None, **keys: Any) -> Job:
    return make_jobs([{"name": "a", **keys}], "jobs", HERD, defaults or Defaults())[0]


def given_jobs(given: list[str]) -> list[Job]:
    read = read_given(given, "claude")
    return make_jobs(read.tables, read.source, HERD, CLAUDE)


def refused(defaults: Defaults | None = None, **keys: Any) -> str:
    with pytest.raises(UsageError) as told:
        made(defaults, **keys)
    return f"{told.value} ({told.value.hint})"


def test_a_job_with_a_prompt_is_an_agents() -> None:
    """Its own keys come before the settings."""
    job = made(CLAUDE, prompt="do it", model="sonnet", max_cost_usd=2, worktree=False)

    assert job.brief == Brief(
        "claude", "do it", "sonnet", "haiku", 2.0, skip_permissions=True, worktree=False
    )
    assert job.argv == ()
    assert job.resumes
    args = ("--effort", "high")
    told = made(Defaults({"agent": "claude", "agent_args": args}), prompt="do it").brief
    assert told is not None
    assert told.args == args
    named = made(CLAUDE, prompt="do it", agent="codex").brief
    assert named is not None
    assert named.agent == "codex"


def test_a_command_stays_one_whatever_agent_is_set() -> None:
    """A setting is for jobs with a prompt."""
    for keys in ({"command": "true"}, {"command": "true", "agent": "command"}):
        assert made(CLAUDE, **keys).brief is None


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"prompt": "x"}, "has no 'agent' (add agent = \"claude\", or use --agent)"),
        ({"agent": "claude"}, "has no 'prompt'"),
        ({"agent": "claude", "prompt": " "}, "key 'prompt': is empty"),
        ({"agent": "claud", "prompt": "x"}, "'claud' is not a known agent (did"),
        ({"agent": "claude", "prompt": "x", "command": "x"}, "'command' does not go with an agent"),
        ({"agent": "claude", "prompt": "x", "stdin": "x"}, "key 'stdin' does not go with an agent"),
        ({"command": "true", "model": "x"}, "key 'model' needs an agent"),
        ({"agent": "claude", "prompt": "x", "max_cost_usd": 0}, "0 is not an amount above zero"),
        ({"agent": "claude", "prompt": "x", "worktree": 1}, "1 is neither true nor false"),
        ({}, "has no 'command'"),
    ],
)
def test_keys_that_do_not_go_together(keys: dict[str, Any], told: str) -> None:
    """Said with the job and the key."""
    assert told in refused(**keys)


def test_prompts_stand_on_the_command_line_and_in_files(tmp_path: Path) -> None:
    """One a line, blank ones left out, each with a telling name."""
    (tmp_path / "more.txt").write_text("fix it\n\nwrite tests\n")
    jobs = given_jobs(["say hello", str(tmp_path / "more.txt")])

    assert [job.brief.prompt for job in jobs if job.brief] == ["say hello", "fix it", "write tests"]
    assert [job.name for job in jobs] == ["1-say-hello", "2-fix-it", "3-write-tests"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "no jobs"),
        (["no-such.txt"], "cannot read no-such.txt"),
        (["do it", "jobs.toml"], "'jobs.toml' is a job file, not a prompt"),
        ([__file__], "is a file, not a prompt"),
    ],
)
def test_a_file_is_not_taken_for_a_prompt(given: list[str], told: str) -> None:
    """Nor is one that is misspelt."""
    with pytest.raises(UsageError) as error:
        given_jobs(given)

    assert told in str(error.value)


def test_prompts_without_an_agent_are_refused() -> None:
    """Two words are no file of jobs."""
    with pytest.raises(UsageError, match="'fix it' is not a job file, and a prompt needs") as told:
        read_given(["fix it", "write tests"], None)

    assert told.value.hint == "ramherd run --agent claude 'fix it' 'write tests'"


def test_a_dry_run_shows_what_would_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The very command and what is added to the environment, but no secret; nothing runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    job = {
        "name": "a b", "agent": "claude", "prompt": "it's", "model": "m",
        "env": {"MY_API_KEY": "sk-1", "X": "a b"},
    }  # fmt: skip
    (tmp_path / "jobs.jsonl").write_text(json.dumps(job))
    program = ("--agent-program", sys.executable)
    code = call(["run", "jobs.jsonl", "--dry-run", *program, "--agent-args", "--effort 'x y'"])
    name, line = capsys.readouterr().out.splitlines()

    assert code == 0
    assert name == "# 'a b'"
    assert line.startswith(f"cd {tmp_path} && ")
    assert "MY_API_KEY=(hidden)" in line
    assert "X='a b'" in line
    assert "DISABLE_AUTOUPDATER=1" in line
    assert f"{os.path.realpath(sys.executable)} -p --output-format stream-json" in line
    assert line.endswith("--model m --effort 'x y' <<< 'it'\"'\"'s'")
    assert not (tmp_path / "state/ramherd/ramherd.db").exists()
