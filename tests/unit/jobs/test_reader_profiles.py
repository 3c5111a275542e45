"""What a job gets from its profile, from flags and from files."""

import argparse
from typing import Any

import pytest

from ramherd.cli.run import make_defaults
from ramherd.config.keys import Setting
from ramherd.config.load import Config, choose_profile, from_defaults, from_flags, make_policy
from ramherd.core.errors import UsageError
from ramherd.core.model import Job
from ramherd.core.policies import Policy
from ramherd.core.units import GIB, MIB
from ramherd.jobs.reader import make_jobs

PROFILES = {
    "big": {"memory": Setting(4 * GIB, "file"), "retries": Setting(2, "file")},
    "small": {"memory_limit": Setting(256 * MIB, "file")},
}


def config(**flags: Any) -> Config:
    above = from_flags(argparse.Namespace(**flags))
    return choose_profile(Config(from_defaults({}), above, PROFILES))


def job(settings: Config, **keys: Any) -> Job:
    (made,) = make_jobs([{"command": "true", **keys}], "jobs", "herd", make_defaults(settings))
    return made


def test_a_job_names_its_profile() -> None:
    """What the profile does not hold comes from elsewhere."""
    made = job(config(timeout="5m"), profile="big")
    assert (made.memory_bytes, made.retries, made.timeout_s) == (4 * GIB, 2, 300.0)


def test_the_profile_of_jobs_that_name_none() -> None:
    """The named one replaces it whole."""
    settings = config(profile="big")
    assert (job(settings).memory_bytes, job(settings).retries) == (4 * GIB, 2)
    assert job(settings, profile="small").retries == 0


def test_a_flag_is_above_the_profile_and_the_job_above_both() -> None:
    """job > flag > profile."""
    settings = config(memory="1GiB")
    assert job(settings, profile="big").memory_bytes == GIB
    assert job(settings, profile="big", memory="2GiB").memory_bytes == 2 * GIB


def test_a_limit_promises_nothing() -> None:
    """Nor may more be promised than the limit allows."""
    assert job(config(), profile="small").memory_bytes == 0
    with pytest.raises(UsageError, match="memory 1 GiB is above memory_limit 256 MiB"):
        job(config(memory="1GiB"), profile="small")


@pytest.mark.parametrize(
    ("name", "message"),
    [("bg", "no profile is named 'bg'"), (3, "key 'profile': is not a string"), ("", "1 to 100")],
)
def test_a_profile_that_is_not_there(name: Any, message: str) -> None:
    """Said with the job and the key."""
    with pytest.raises(UsageError, match=message):
        job(config(), profile=name)


def test_without_settings_the_policy_is_the_policy() -> None:
    """The table has no numbers of its own."""
    assert make_policy(config()) == Policy()
