"""Whatever is in a job file, there are jobs or one line of error, and nothing else."""

import json
import os
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ramherd.core.errors import UsageError
from ramherd.core.model import Job
from ramherd.jobs.schema import BUILT_KEYS, KEYS_TO_COME
from ramherd.jobs.stored import job_to_text
from support.jobs import jobs_from_lines, read_job_file
from support.reached import Reached

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
LIKELY = st.sampled_from(
    ["true", "sh", "/", "a", "b", "1GiB", "5s", 1, 0, ["true"], ["a"], {"A": ""}]
)
TABLE = st.dictionaries(
    st.sampled_from([*BUILT_KEYS, *BUILT_KEYS, *KEYS_TO_COME, "x"]), LIKELY | JSON
)
# Most of these are jobs.
VALID = st.fixed_dictionaries(
    {"command": st.sampled_from(["true", ["true", "x"]])},
    optional={
        "env": st.just({"A": "b"}),
        "memory": st.sampled_from(["1GiB", 1]),
        "priority": st.integers(-9, 9),
        "retries": st.integers(0, 3),
        "stdin": st.text(max_size=20),
        "timeout": st.sampled_from(["5s", 1]),
        "cwd": st.just("/"),
        "label": st.text(max_size=20),
    },
)
TOML_LINES = st.sampled_from(
    ["# x\n", "\n", 'name = "a"\n', 'memory = "1GiB"\n', "priority = 1\n", "retries = 0x1\n",
     'env = {A = "b"}\n', "env.B = 'c'\n", '[[job]]\ncommand = "false"\n', "timeout = 1e1\n"]
)  # fmt: skip
TOML_PIECES = st.sampled_from(
    ["[[job]]\n", "[job]\n", "command", "name", "memory", "env", ".", " = ", '"true"', "'", '"""',
     '["true"]', "{", "}", "[", "]", ",", "\n", "# ", "1", "-1", "1e9", "0x1f", "inf", "nan",
     "1979-05-27", "07:32:00", "2000-02-30", "true", "\\u00", "\\ud800", "\x00", "\u2028", "\r"]
)  # fmt: skip


def read(data: bytes) -> list[Job] | str:
    """The jobs, or the line that says what is wrong."""
    try:
        jobs = read_job_file("-", data)
    except UsageError as error:
        said = str(error)
    else:
        check_can_be_stored_and_started(jobs)
        return jobs
    assert said.isprintable()
    return said


def check_can_be_stored_and_started(jobs: list[Job]) -> None:
    assert jobs
    for job in jobs:
        json.loads(job_to_text(job), parse_constant=pytest.fail)
        for text in (*job.argv, *job.env, *job.env.values(), job.cwd):
            assert b"\0" not in os.fsencode(text)


@given(st.binary())
@example(b"\xef\xbb\xbf")
@example(b"\xff\xfe")
@example(b"\0")
def test_any_bytes_give_jobs_or_one_line(data: bytes) -> None:
    """As TOML, as JSONL, and as lines."""
    read(data)
    read(b"{" + data)
    with suppress(UsageError):
        assert jobs_from_lines(["echo"], data)


@given((st.lists(TOML_PIECES, max_size=12) | st.lists(TOML_LINES, max_size=3)).map("".join))
def test_anything_like_toml_gives_jobs_or_one_line(reached: Reached, text: str) -> None:
    """Half a table, dates that are none, quotes that never end."""
    read(text.encode())
    found = read(f'[[job]]\ncommand = "true"\n{text}'.encode())
    reached(isinstance(found, list), "jobs")
    reached(isinstance(found, str), "one line")


@given(st.lists(TABLE, min_size=1, max_size=4) | st.lists(VALID, min_size=1, max_size=4))
def test_any_objects_give_jobs_or_one_line(reached: Reached, tables: list[dict[str, Any]]) -> None:
    """Every key with a value of every kind."""
    found = read("\n".join(json.dumps(table) for table in tables).encode())
    reached(isinstance(found, str), "one line")
    reached(isinstance(found, list), "jobs")


def table(key: str, value: str) -> bytes:
    return f'[[job]]\nname = "a"\ncommand = "true"\n{key} = {value}\n'.encode()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(table("priority", "9" * 5000), id="a long number in TOML"),
        pytest.param(table("priority", "0x" + "f" * 5000), id="a long hexadecimal number"),
        pytest.param(b'{"priority": ' + b"9" * 5000 + b"}", id="a long number in JSON"),
        pytest.param(table("memory", '"' + "9" * 400 + '"'), id="a size beyond all floats"),
        pytest.param(b"job = " + b"[" * 5000, id="deep TOML"),
    ],
)
def test_a_hostile_file_gives_one_line(data: bytes) -> None:
    """Longer and deeper than Python takes is an error of the file, not of ours."""
    assert isinstance(read(data), str)


def test_nesting_that_only_just_parses_gives_one_line() -> None:
    """What can be read can also be named in an error."""
    for depth in range(900, 1000):
        read(b'{"command": "true", "memory": ' + b"[" * depth + b"]" * depth + b"}")


@pytest.mark.parametrize(
    "keys",
    [
        {"cwd": "/a\nb"},
        {"cwd": "/\x1b[2J"},
        {"command": ["no\nsuch"]},
        {"env": {"A\nB": 1}},
    ],
)
def test_nothing_of_the_file_breaks_the_line(keys: dict[str, Any]) -> None:
    """An error is one line, and no control sequence of a file reaches the terminal."""
    found = read(json.dumps({"command": "true", **keys}).encode())

    assert isinstance(found, str)


@pytest.mark.parametrize("env", [{"A": "\ud800"}, {"\ud800": "a"}])
def test_an_environment_that_no_program_can_be_given_is_refused(env: dict[str, str]) -> None:
    """Before anything starts, not with exit status 127 and no word why."""
    assert isinstance(read(json.dumps({"command": "true", "env": env}).encode()), str)
