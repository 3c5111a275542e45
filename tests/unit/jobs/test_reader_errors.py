"""Jobs that are wrong: one line that names file, job and key, before anything starts."""

import json
from pathlib import Path
from typing import Any

import pytest

from ramherd.core.errors import UsageError
from ramherd.jobs.schema import BUILT_KEYS, KEYS_TO_COME
from support.jobs import jobs_from_lines, read_job_file

# All keys that a job may have or will have.
CONTRACT_KEYS = """name, agent, profile, prompt, command, resume_command, cwd, env, stdin, model,
mcp, priority, after, label, memory, memory_limit, timeout, retries, reuse, worktree, workspace,
base, needs, on_done, max_cost_usd, container, fallback_model, skip_permissions, agent_program,
agent_args, on_limit"""


def refusal(tmp_path: Path, data: str | bytes, name: str = "jobs.toml") -> UsageError:
    """The error of this file, which is of one line and names it."""
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    with pytest.raises(UsageError) as caught:
        read_job_file(str(path))
    assert str(path) in str(caught.value)
    assert_one_line(caught.value)
    return caught.value


def refusal_of(tmp_path: Path, **keys: Any) -> UsageError:
    """The error of one job with these keys."""
    table = {"name": "build", "command": ["true"], **keys}
    return refusal(tmp_path, json.dumps(table), "jobs.jsonl")


def assert_one_line(error: UsageError) -> None:
    assert error.exit_code == 2
    assert str(error).isprintable()
    assert "\n" not in error.hint


def test_the_keys_are_those_of_the_contract() -> None:
    """Built or to come, no other."""
    contract = {key.strip() for key in CONTRACT_KEYS.split(",")}

    assert set(BUILT_KEYS) | set(KEYS_TO_COME) == contract
    assert not set(BUILT_KEYS) & set(KEYS_TO_COME)


@pytest.mark.parametrize(
    ("key", "near"),
    [("comand", "command"), ("memory_limits", "memory_limit"), ("retry", "retries"),
     ("Name", "name"), ("dir", None)],
)  # fmt: skip
def test_an_unknown_key_is_named_with_the_nearest(
    tmp_path: Path, key: str, near: str | None
) -> None:
    """A typing error is mended by what the hint says; for anything else all keys are listed."""
    error = refusal_of(tmp_path, **{key: "x"})

    assert f"job 1 (build) has an unknown key {key!r}" in str(error)
    assert error.hint == f"did you mean {near!r}?" if near else "known values: name" in error.hint


@pytest.mark.parametrize("key", KEYS_TO_COME)
def test_a_key_to_come_says_so(tmp_path: Path, key: str) -> None:
    """It is no typing error: the feature is not available yet."""
    error = refusal_of(tmp_path, **{key: "x"})

    assert "job 1 (build)" in str(error)
    assert f"key {key!r} is not available yet" in str(error)


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("command", [], "neither a list of words nor a line"),
        ("resume_command", [], "neither a list of words nor a line"),
        ("resume_command", 7, "neither a list of words nor a line"),
        ("resume_command", ["no-such-program-anywhere"], "no-such-program-anywhere"),
        ("command", "  ", "neither a list of words nor a line"),
        ("command", [""], "neither a list of words nor a line"),
        ("command", 5, "neither a list of words nor a line"),
        ("command", ["true", 5], "not a string"),
        ("command", ["true", "\0"], "without NUL"),
        ("command", "echo \0", "without NUL"),
        ("command", ["no-such-program-at-all"], "'no-such-program-at-all' is not found"),
        ("command", ["./no-such-file"], "'./no-such-file' is not found"),
        ("cwd", "/no/such/place", "'/no/such/place' is not a directory"),
        ("cwd", "/etc/passwd", "'/etc/passwd' is not a directory"),
        ("cwd", 5, "not a string"),
        ("memory", "lots", "'lots' is not a size"),
        ("memory", "12XB", "unknown unit"),
        ("memory", 0, "not above zero"),
        ("memory", 1.5, "size '1.5' has no unit"),
        ("memory", 512, "size '512' has no unit"),
        ("memory_limit", 1 << 30, "size '1073741824' has no unit"),
        ("memory_limit", "4", "size '4' has no unit"),
        ("memory_limit", "4KiB", "size '4KiB' is below 1 MiB"),
        ("memory_limit", True, "True is not a size"),
        ("memory_limit", [], "[] is not a size"),
        ("timeout", "soon", "'soon' is not a duration"),
        ("timeout", "5 parsecs", "unknown unit"),
        ("timeout", 0, "not above zero"),
        ("timeout", {}, "{} is not a duration"),
        ("retries", -1, "-1 is below zero"),
        ("retries", 1.5, "1.5 is not a whole number"),
        ("retries", True, "True is not a whole number"),
        ("priority", "high", "'high' is not a whole number"),
        ("priority", 1 << 63, "is not a whole number"),
        ("after", 5, "not a list of job names"),
        ("after", [5], "not a string"),
        ("after", [""], "printable"),
        ("env", "X=1", "not a table of strings"),
        ("env", {"X": 1}, "'X' is not a string"),
        ("env", {"A=B": "1"}, "'A=B' cannot be the name"),
        ("env", {"": "1"}, "'' cannot be the name"),
        ("env", {"X": "\0"}, "without NUL"),
        ("stdin", 5, "not a string"),
        ("stdin", "\ud800", "half a surrogate pair"),
        ("label", None, "not a string"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_job_and_key(
    tmp_path: Path, key: str, value: Any, what: str
) -> None:
    """Which file, which job by number and name, which key, and what is wrong with it."""
    error = refusal_of(tmp_path, **{key: value})

    assert f"job 1 (build), key {key!r}: " in str(error)
    assert what in str(error)


@pytest.mark.parametrize("name", ["", "x" * 101, "a\nb", "\x1b[2J", "\u2028", "\ud800", 5, None])
def test_a_wrong_name_is_named_by_the_number_of_its_job(tmp_path: Path, name: Any) -> None:
    """Names are shown on screens: 1 to 100 printable characters."""
    assert "job 1, key 'name': " in str(refusal_of(tmp_path, name=name))


def test_a_program_that_may_not_be_started_says_how_to_mend_it(tmp_path: Path) -> None:
    """Not executable is another thing than not found."""
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    error = refusal_of(tmp_path, command=["./tool"], cwd=str(tmp_path))

    assert "key 'command': './tool' is not executable" in str(error)
    assert error.hint == f"chmod +x {tmp_path}/./tool"


def test_a_job_without_a_command_says_what_to_add(tmp_path: Path) -> None:
    """`command` is the one key that has no default."""
    error = refusal(tmp_path, '[[job]]\nname = "a"')

    assert "job 1 (a) has no 'command'" in str(error)
    assert "command = [" in error.hint


def test_memory_above_its_own_limit_is_refused_with_both_numbers(tmp_path: Path) -> None:
    """It could only ever be killed."""
    error = refusal_of(tmp_path, memory="2GiB", memory_limit="1GiB")

    assert "job 1 (build): memory 2 GiB is above memory_limit 1 GiB" in str(error)


def test_two_jobs_of_one_name_are_both_named(tmp_path: Path) -> None:
    """A name that was given collides also with one that was made up."""
    given = '[[job]]\nname = "a"\ncommand = "true"\n' * 2
    made_up = '[[job]]\nname = "job-2"\ncommand = "true"\n[[job]]\ncommand = "true"\n'

    assert "jobs 1 and 2 are both named 'a'" in str(refusal(tmp_path, given))
    assert "jobs 1 and 2 are both named 'job-2'" in str(refusal(tmp_path, made_up))


def test_an_unknown_name_in_after_is_named_with_the_nearest(tmp_path: Path) -> None:
    """Which job waits, and for whom."""
    text = '[[job]]\nname="build"\ncommand="true"\n[[job]]\ncommand="true"\nafter="biuld"'
    error = refusal(tmp_path, text)

    assert "job 2 (job-2), key 'after': no job is named 'biuld'" in str(error)
    assert error.hint == "did you mean 'build'?"


@pytest.mark.parametrize(
    ("after", "circle"),
    [({"a": "a"}, "a -> a"), ({"a": "b", "b": "c", "c": "b"}, "b -> c -> b")],
)
def test_a_circle_of_jobs_is_spelt_out(tmp_path: Path, after: dict[str, str], circle: str) -> None:
    """Only those that go round in circles, not all that wait for them."""
    lines = [json.dumps({"name": n, "command": "true", "after": a}) for n, a in after.items()]
    error = refusal(tmp_path, "\n".join(lines), "jobs.jsonl")

    assert f"key 'after': circular dependency: {circle}" in str(error)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("", "jobs.toml"),
        ("", "jobs.jsonl"),
        (" \n\t\n", "jobs.toml"),
        (" \n\t\n", "jobs.jsonl"),
        ("\ufeff", "jobs.jsonl"),
        ("# nothing yet\n", "jobs.toml"),
        ("job = []", "jobs.toml"),
    ],
)
def test_a_file_without_jobs_is_refused(tmp_path: Path, data: str, name: str) -> None:
    """An empty list is more likely a mistake than a wish."""
    assert "no jobs in " in str(refusal(tmp_path, data, name))


def test_no_lines_are_no_jobs() -> None:
    """The same for standard input."""
    with pytest.raises(UsageError, match="no jobs in standard input"):
        jobs_from_lines(["true"], b"\n \n")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ('[[job]]\nname = "é"'.encode("utf-16"), "not UTF-8: byte 0xff at offset 0"),
        ('[[job]]\nname = "é"'.encode("latin-1"), "not UTF-8: byte 0xe9 at offset 16"),
        (b'{"name": "\xff"}', "not UTF-8: byte 0xff at offset 10"),
    ],
)
def test_a_wrong_encoding_is_named_with_its_byte(tmp_path: Path, data: bytes, what: str) -> None:
    """Where an editor has to look, and what to save it as."""
    error = refusal(tmp_path, data)

    assert what in str(error)
    assert "UTF-8" in error.hint


def test_a_wrong_byte_after_a_byte_order_mark_is_the_one_named(tmp_path: Path) -> None:
    """The mark's three bytes are bytes of the file."""
    error = refusal(tmp_path, b"\xef\xbb\xbf[[job]]\n\xff")

    assert "byte 0xff at offset 11" in str(error)


@pytest.mark.parametrize(
    ("data", "name", "what"),
    [
        ("[[job]]\nname = \n", "jobs.toml", "line 2, column 8"),
        ("[[job]\n", "jobs.toml", "line 1, column"),
        ('[[job]]\nname = "a"\nname = "b"\n', "jobs.toml", "line 3, column"),
        ('[[job]]\nname = "a', "jobs.toml", "not TOML: "),
        ('{"command": "true"}\n{"command": tru}\n', "jobs.jsonl", ", line 2 is not JSON: "),
        ('{"command": "true"} {}\n', "jobs.jsonl", ", line 1 is not JSON: Extra data"),
        ("\n\n{", "jobs.jsonl", ", line 3 is not JSON: "),
        ("[" * 100_000, "jobs.jsonl", ", line 1 is not JSON: "),
    ],
)
def test_a_file_that_does_not_parse_says_where(
    tmp_path: Path, data: str, name: str, what: str
) -> None:
    """The line of the file, in one line of ours."""
    assert what in str(refusal(tmp_path, data, name))


@pytest.mark.parametrize(
    ("data", "name", "what"),
    [
        ("5\n", "jobs.jsonl", "job 1 is not an object"),
        ('{"command": "true"}\nnull\n', "jobs.jsonl", "job 2 is not an object"),
        ("job = 5", "jobs.toml", "'job' is not a list of tables"),
        ("job = [5]", "jobs.toml", "job 1 is not an object"),
        ('[job]\ncommand = "true"', "jobs.toml", "'job' is not a list of tables"),
        ('[[jobs]]\ncommand = "true"', "jobs.toml", "unknown key 'jobs'"),
    ],
)
def test_a_file_of_another_shape_is_refused(
    tmp_path: Path, data: str, name: str, what: str
) -> None:
    """What stands where a job should be is told by its number."""
    assert what in str(refusal(tmp_path, data, name))


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    """Not there, or a directory."""
    for path, what in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(UsageError, match=what) as caught:
            read_job_file(str(path))
        assert str(path) in str(caught.value)


def test_standard_input_is_named_as_such() -> None:
    """`-` is no name that helps."""
    with pytest.raises(UsageError, match=r"standard input: job 1 \(job-1\), key 'command'"):
        read_job_file("-", b'{"command": 5}')
    with pytest.raises(UsageError, match=r"standard input: job 1 .*, key 'command': 'no-such"):
        jobs_from_lines(["no-such-{}"], b"program")


def test_a_current_directory_that_is_gone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a job without a `cwd` of its own needs it."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    path = tmp_path / "jobs.jsonl"
    table = {"name": "a", "command": ["true"]}

    path.write_text(json.dumps({**table, "cwd": str(tmp_path)}))
    assert read_job_file(str(path))[0].cwd == str(tmp_path)
    path.write_text(json.dumps(table))
    with pytest.raises(UsageError, match="the current directory no longer exists") as caught:
        read_job_file(str(path))
    assert caught.value.hint
