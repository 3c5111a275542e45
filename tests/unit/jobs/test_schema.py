"""The table of job keys fits the nouns, the settings and the stored form."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from ramherd.config.keys import BY_NAME
from ramherd.core.model import Brief, Job, Tree
from ramherd.jobs.schema import (
    BUILT_KEYS,
    PROFILE_KEYS,
    SETTING_KEYS,
    JobKey,
    describe_new_job,
    describe_shown,
)
from ramherd.jobs.stored import job_from_json, job_to_json, submitted_json
from support.make import job

COMMAND_JOB = job(
    env={"A": "1"}, stdin="", after=("b",), timeout_s=1.5, retries=2,
    resume_argv=("sh",),
)  # fmt: skip
TREE = Tree("/repo", "c0ffee", "/work/tree", "ramherd/a", "sub")
AGENT_JOB = job(brief=Brief("claude", "do it", worktree=True, tree=TREE, args=("-x",)))


@pytest.mark.parametrize("key", BUILT_KEYS.values(), ids=lambda key: key.name)
def test_a_key_is_a_field_of_the_noun_that_stores_it(key: JobKey) -> None:
    """Only `profile` is not stored: its values are."""
    noun: Any = Brief if key.is_in_brief else Job

    assert key.is_stored == (key.name != "profile")
    assert not key.is_stored or key.field in {field.name for field in fields(noun)}


def test_settings_for_jobs_are_keys_of_jobs() -> None:
    """With the same type, default and description."""
    assert {name for name, key in BY_NAME.items() if key.of_job} == set(SETTING_KEYS)
    for name, key in SETTING_KEYS.items():
        setting = BY_NAME[name]
        assert (setting.kind, setting.default, setting.help) == (key.kind, key.default, key.help)
    assert set(SETTING_KEYS) - set(PROFILE_KEYS) == {"profile"}


def test_the_description_has_the_keys_that_are_checked() -> None:
    """Each with its meaning; keys whose features are not built are left out."""
    described = describe_new_job()["properties"]

    assert list(described) == list(BUILT_KEYS)
    assert all(key["description"] for key in described.values())


@pytest.mark.parametrize("made", [COMMAND_JOB, AGENT_JOB], ids=["command", "agent"])
def test_a_job_comes_back_from_its_stored_form(made: Job) -> None:
    """Through JSON, as the store writes it; a field of a newer ramherd is passed over. Of its
    variables only the names are stored.
    """
    stored = json.loads(json.dumps(job_to_json(made)))

    assert job_from_json(stored) == replace(made, env={})
    assert job_from_json({**stored, "of_a_newer_ramherd": 1}) == replace(made, env={})
    assert stored["env_names"] == list(made.env)


def test_a_job_of_an_older_ramherd_has_defaults_for_what_was_not_there_yet() -> None:
    """Also inside of its brief."""
    stored = json.loads(json.dumps(job_to_json(AGENT_JOB)))
    for name in ("label", "retries"):
        del stored[name]
    for name in ("args", "reuse", "tree", "worktree"):
        del stored["brief"][name]

    found = job_from_json(stored)

    assert (found.label, found.retries, found.brief) == ("", 0, Brief("claude", "do it"))


def test_what_is_shown_of_a_job_holds_no_environment() -> None:
    """It may hold secrets."""
    shown = submitted_json(job_to_json(COMMAND_JOB))

    assert set(shown) == set(describe_shown())
    assert "env" not in shown
    assert (shown["agent"], shown["argv"]) == (None, COMMAND_JOB.argv)
