"""`ramherd submit`: jobs go out as they were written, and the service alone checks them."""

import os
from pathlib import Path

import pytest

from integration.api.conftest import Served
from ramherd.cli.main import call
from ramherd.core.errors import UsageError
from ramherd.core.model import Job
from ramherd.core.units import GIB, MIB
from ramherd.jobs.stored import job_from_text


@pytest.fixture(autouse=True)
def here(api: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the user, who has no settings."""
    for name in list(os.environ):
        if name.startswith("RAMHERD_") and not name.startswith("RAMHERD_TEST"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("RAMHERD_RUNTIME_DIR", str(api.runtime))
    api.runtime.chmod(0o700)
    (tmp_path / "here/below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def stored(api: Served) -> list[Job]:
    """The jobs of all herds, as the service would start them."""
    return [job_from_text(spec) for (spec,) in api.store.read("SELECT spec FROM jobs ORDER BY id")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[[job]]\nname = "a"\ncomand = "x"',
            "jobs.toml: job 1 (a) has an unknown key 'comand'\n  hint: did you mean 'command'?",
        ),
        (
            '[[job]]\ncommand = "x"\nmemory = "2XB"',
            "jobs.toml: job 1 (job-1), key 'memory': size '2XB' has an unknown unit\n"
            "  hint: use KiB, MiB, GiB, KB, MB or GB",
        ),
        (
            '[[job]]\ncommand = "x"\nprofile = "no"',
            "jobs.toml: job 1 (job-1), key 'profile': no profile is named 'no'\n"
            "  hint: add [profile.no] to ramherd.toml",
        ),
        (
            "job = 1",
            "jobs.toml: 'job' is not a list of tables\n  hint: write [[job]] instead of [job]",
        ),
        ("", "no jobs in jobs.toml\n  hint: see the examples: ramherd run --help"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_as_if_it_were_found_here(
    api: Served, here: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    """The file, the job and the key, a hint, and the exit code of a usage error."""
    (here / "jobs.toml").write_text(text)

    assert call(["submit", "jobs.toml"]) == 2
    assert capsys.readouterr().err == f"ramherd: {told}\n"
    assert stored(api) == []


def test_paths_start_where_submit_was_called(api: Served, here: Path) -> None:
    """A job without a directory runs there; `--cwd` is for jobs that name none."""
    text = '{"command": "true"}\n{"command": "true", "cwd": "below"}\n'
    (here / "jobs.jsonl").write_text(text)

    assert call(["submit", "jobs.jsonl"]) == 0
    assert call(["submit", "jobs.jsonl", "--cwd", ".."]) == 0
    assert [job.cwd for job in stored(api)] == [
        str(here), str(here / "below"), str(here.parent), str(here / "below"),
    ]  # fmt: skip


def test_settings_and_profiles_of_here_reach_the_jobs(api: Served, here: Path) -> None:
    """A flag is above the profile, and the job above both."""
    (here / "ramherd.toml").write_text('retries = 1\n[profile.big]\nmemory = "2GiB"\nretries = 5\n')
    jobs = ["", 'profile = "big"', 'profile = "big"\nmemory = "1GiB"']
    (here / "jobs.toml").write_text("".join(f'[[job]]\ncommand = "true"\n{job}\n' for job in jobs))

    assert call(["submit", "jobs.toml", "--memory-limit", "3GiB"]) == 0
    found = [(job.memory_bytes, job.memory_limit_bytes, job.retries) for job in stored(api)]
    assert found == [(0, 3 * GIB, 1), (2 * GIB, 3 * GIB, 5), (GIB, 3 * GIB, 5)]


def test_an_integer_is_a_number_of_bytes(api: Served) -> None:
    """For programs; text needs a unit, and less than 1 MiB is a mistake, as in a file."""
    api.client.submit([{"command": "true", "memory_limit": 512 * MIB}], cwd="/")
    assert [job.memory_limit_bytes for job in stored(api)] == [512 * MIB]
    for wrong, message in ((512, "size 512 is below 1 MiB"), ("512", "size '512' has no unit")):
        with pytest.raises(UsageError, match=f"key 'memory_limit': {message}") as caught:
            api.client.submit([{"command": "true", "memory_limit": wrong}], cwd="/")
        assert caught.value.hint == "512 bytes? say 512MiB"


def test_a_size_of_a_submitted_file_needs_a_unit(
    api: Served, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The service refuses it with the words of `ramherd run`."""
    (here / "jobs.toml").write_text('[[job]]\ncommand = "true"\nmemory_limit = 536870912\n')
    assert call(["submit", "jobs.toml"]) == 2
    assert capsys.readouterr().err == (
        "ramherd: jobs.toml: job 1 (job-1), key 'memory_limit': size '536870912' has no unit\n"
        "  hint: 536870912 bytes? say 512MiB\n"
    )


def test_a_request_may_have_values_for_jobs_that_give_none(api: Served) -> None:
    """Checked like the keys of a job."""
    api.client.submit(
        [{"command": "true"}, {"command": "true", "profile": "p"}],
        cwd="/", defaults={"memory": "1MiB"}, profiles={"p": {"timeout": 7}},
    )  # fmt: skip
    first, second = stored(api)
    assert (first.cwd, first.memory_bytes, first.timeout_s) == ("/", MIB, None)
    assert (second.memory_bytes, second.timeout_s) == (0, 7.0)
    for given, message in (
        ({"defaults": {"memory": "x"}}, "the defaults, key 'memory': 'x' is not a size"),
        ({"defaults": {"profile": "p"}}, "the defaults has an unknown key 'profile'"),
        ({"profiles": {"p": 1}}, "profile 'p' is not an object with keys"),
        ({"cwd": "/no/such/place"}, "'/no/such/place' is not a directory"),
    ):
        with pytest.raises(UsageError, match=message):
            api.client.submit([{"command": "true"}], **given)
