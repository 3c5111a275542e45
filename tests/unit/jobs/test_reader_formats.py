"""Jobs that are right: TOML, JSONL, standard input and lines."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.model import Job
from ramherd.core.units import GIB, MIB
from ramherd.jobs.reader import Defaults, find_cycle, line_name
from support.jobs import jobs_from_lines, read_job_file
from support.make import HERD
from support.reached import Reached

TOML = """
[[job]]
name = "first"
command = ["sh", "-c", "echo $X"]
cwd = "/"
env = { X = "1" }
stdin = "hello"
priority = 5
label = "test"
memory = "1GiB"
memory_limit = "2GiB"
timeout = "5m"
retries = 2

[[job]]
command = "echo one && echo two"
after = ["first"]
"""


SET = {"memory": MIB, "memory_limit": GIB, "timeout": 7.0, "retries": 3}


def read(data: str | bytes, defaults: Defaults | None = None) -> list[Job]:
    data = data.encode() if isinstance(data, str) else data
    return read_job_file("-", data, defaults)


def test_a_toml_file_becomes_jobs_in_its_order() -> None:
    """Every key arrives, in bytes and seconds."""
    first, second = read(TOML)

    assert first == Job(
        id=first.id, herd=HERD, name="first", seq=1, argv=("sh", "-c", "echo $X"), cwd="/",
        memory_bytes=GIB, env={"X": "1"}, stdin="hello", priority=5, after=(), label="test",
        memory_limit_bytes=2 * GIB, timeout_s=300.0, retries=2,
    )  # fmt: skip
    assert (second.seq, second.name, second.after) == (2, "job-2", ("first",))
    assert first.id < second.id


def test_a_command_that_is_a_text_is_run_by_the_shell() -> None:
    """And what it starts is found by the shell, not by us."""
    assert read(TOML)[1].argv == ("/bin/sh", "-c", "echo one && echo two")


def test_jsonl_says_the_same_as_toml() -> None:
    """One object a line; blank lines and Windows line ends do not matter."""
    import tomllib

    lines = "\r\n\n".join(json.dumps(table) for table in tomllib.loads(TOML)["job"])

    def plain(job: Job) -> tuple[object, ...]:
        return (job.name, job.argv, job.env, job.memory_bytes, job.timeout_s, job.after)

    assert [plain(job) for job in read(lines)] == [plain(job) for job in read(TOML)]


@pytest.mark.parametrize("name", ["jobs.jsonl", "jobs.ndjson", "jobs.txt", "jobs"])
def test_jsonl_is_known_by_its_name_or_its_first_brace(tmp_path: Path, name: str) -> None:
    """A file may be called anything if it starts like an object."""
    path = tmp_path / name
    path.write_text('\n  {"command": "true"}\n')

    (job,) = read_job_file(str(path))

    assert job.name == "job-1"


@pytest.mark.parametrize("text", [TOML, '{"command": "true"}\n{"command": "true"}'])
def test_a_byte_order_mark_is_no_part_of_a_file(text: str) -> None:
    """Editors on Windows put one there."""
    assert len(read(b"\xef\xbb\xbf" + text.encode())) == 2


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c"])
def test_a_line_of_jsonl_ends_at_a_newline_only(char: str) -> None:
    """JSON may hold U+2028 and its like inside a text."""
    line = json.dumps({"command": f"echo a{char}b"}, ensure_ascii=False)
    if char in "\x0b\x0c":
        line = json.dumps({"command": f"echo a{char}b"})

    assert read(line)[0].argv[-1] == f"echo a{char}b"


def test_a_job_that_says_nothing_gets_the_defaults() -> None:
    """Flags first; without one, what its kind needs, no limit, no timeout, no retries, here."""
    (bare,) = read('[[job]]\ncommand = "true"')
    (told,) = read('[[job]]\ncommand = "true"', Defaults(SET))

    assert (bare.memory_bytes, bare.memory_limit_bytes) == (0, None)
    assert (bare.timeout_s, bare.retries, bare.cwd) == (None, 0, str(Path.cwd()))
    assert (told.memory_bytes, told.memory_limit_bytes) == (MIB, GIB)
    assert (told.timeout_s, told.retries) == (7.0, 3)


def test_a_limit_promises_nothing() -> None:
    """What a job may hold at most is not what it needs."""
    (made,) = read('[[job]]\ncommand = "true"\nmemory_limit = "9MiB"')

    assert (made.memory_bytes, made.memory_limit_bytes) == (0, 9 * MIB)


def test_a_job_says_how_it_goes_on() -> None:
    """A list, or a string for the shell, as `command`; without one it starts over."""
    texts = ('["true", "--resume"]', '"true --resume"')
    told = [read(f'[[job]]\ncommand = "true"\nresume_command = {text}')[0] for text in texts]

    assert told[0].resume_argv == ("true", "--resume")
    assert told[1].resume_argv[-1] == "true --resume"
    assert told[1].resume_argv[:-1] == told[1].argv[:-1]
    assert read('[[job]]\ncommand = "true"')[0].resume_argv == ()


def test_a_program_is_looked_for_where_it_will_be_started(tmp_path: Path) -> None:
    """Below the job's cwd when it has a slash, in the job's own PATH when it has none."""
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    by_cwd = {"command": ["bin/tool"], "cwd": str(tmp_path)}
    by_path = {"command": ["tool"], "env": {"PATH": str(tool.parent)}}

    jobs = read(json.dumps(by_cwd) + "\n" + json.dumps(by_path))

    assert [job.argv for job in jobs] == [("bin/tool",), ("tool",)]


def test_after_takes_one_name_or_several_and_each_once() -> None:
    """`after = "a"` is short for a list, and a job waits for another once."""
    lines = [
        {"name": "a", "command": "true", "after": "b"},
        {"name": "b", "command": "true"},
        {"name": "c", "command": "true", "after": ["a", "b", "a"]},
    ]
    jobs = read("\n".join(json.dumps(line) for line in lines))

    assert [job.after for job in jobs] == [("b",), (), ("a", "b")]


def test_each_line_of_standard_input_is_a_job() -> None:
    """`{}` is replaced wherever it stands; blank lines are no jobs."""
    data = b"one\r\n\n  \ntwo words\n"

    jobs = jobs_from_lines(["echo", "<{}>", "{}{}"], data)

    assert [job.argv for job in jobs] == [
        ("echo", "<one>", "oneone"),
        ("echo", "<two words>", "two wordstwo words"),
    ]


def test_without_braces_the_line_comes_last() -> None:
    """One word, however many spaces it has: no shell looks at it."""
    (job,) = jobs_from_lines(["echo", "-n"], b"two; words {}")

    assert job.argv == ("echo", "-n", "two; words {}")


def test_a_replaced_line_is_not_replaced_again() -> None:
    """A line that holds braces stays as it is."""
    (job,) = jobs_from_lines(["echo", "a{}"], b"{}{}")

    assert job.argv == ("echo", "a{}{}")


@pytest.mark.parametrize("char", ["\u2028", "\x0c", "\x85", "\x1c"])
def test_a_line_of_standard_input_ends_at_a_newline_only(char: str) -> None:
    """One job for each line, and a prompt may hold any character but a newline."""
    data = f"a{char}b\n".encode()

    jobs = jobs_from_lines(["echo"], data)

    assert [job.argv for job in jobs] == [("echo", f"a{char}b")]


def test_a_name_made_from_a_line_still_tells() -> None:
    """Its number, then its words, cut short."""
    assert line_name(3, "fix the: lint/errors!") == "3-fix-the-lint-errors"
    assert line_name(7, "???") == "job-7"
    assert line_name(12, "word " * 50) == "12-word-word-word-word"
    assert line_name(2, "a" * 50) == "2-" + "a" * 22


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), min_size=1))
def test_names_made_from_lines_are_unique(lines: list[str]) -> None:
    """Two lines that look alike are still two jobs."""
    names = [line_name(number, line) for number, line in enumerate(lines, 1)]

    assert len(set(names)) == len(names)
    assert all(name and name.isprintable() for name in names)


NAMES = st.sampled_from("abcdef")
GRAPHS = st.dictionaries(NAMES, st.sets(NAMES, min_size=1), min_size=2)
ORDERS = st.fixed_dictionaries({one: st.sets(NAMES) for one in "abcdef"}).map(
    lambda graph: {one: {n for n in after if n < one} for one, after in graph.items()}
)


@given(GRAPHS, ORDERS)
def test_a_circle_is_found_exactly_when_there_is_one(
    reached: Reached, any_graph: dict[str, set[str]], order: dict[str, set[str]]
) -> None:
    """And what is named is a circle: each waits for the next, the last is the first."""
    for after in (any_graph, order):
        graph = {name: tuple(n for n in names if n in after) for name, names in after.items()}

        cycle = find_cycle(graph)

        reached(cycle, "a circle")
        reached(not cycle and any(graph.values()), "an order without a circle")
        assert bool(cycle) == any(reaches(graph, name, name) for name in graph)
        assert all(then in graph[one] for one, then in pairwise(cycle))
        assert not cycle or (cycle[0] == cycle[-1] and len(set(cycle)) == len(cycle) - 1)


def reaches(graph: dict[str, tuple[str, ...]], start: str, goal: str) -> bool:
    seen: set[str] = set()
    edge = list(graph[start])
    while edge:
        name = edge.pop()
        if name not in seen:
            seen.add(name)
            edge += graph[name]
    return goal in seen


def test_a_long_line_of_jobs_is_no_circle() -> None:
    """Ten thousand jobs, each after the one before, are read without recursion."""
    chain = {str(n): (str(n - 1),) if n else () for n in range(10_000)}

    assert find_cycle(chain) == []
