"""What `ramherd run` shows of what commands print, on real runs."""

import json
import shlex
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from integration.conftest import Ramherd, await_
from ramherd.show.live_display import BEGIN_FRAME
from support.terminals import open_terminal

RUN = [sys.executable, "-m", "ramherd", "run"]
# The first line gets a job that ends last.
SLOW_FIRST = ("sh", "-c", "sleep 0.$((9 - 4 * {})); echo out-{}; printf err-{} >&2")


def test_a_pipe_gets_what_jobs_print_and_nothing_else(ramherd: Ramherd) -> None:
    """Each job in one piece when it has ended; our own lines are on standard error."""
    done = ramherd.run("run", "--", *SLOW_FIRST, stdin="1\n2\n")
    lines = done.stderr.splitlines()

    assert (done.returncode, done.stdout) == (0, "out-2\nout-1\n")
    assert sum("start     " in line for line in lines) == 2
    assert "err-1" in done.stderr
    assert "2 of 2 jobs done" in done.stderr


def test_tags_and_the_order_of_the_jobs(ramherd: Ramherd) -> None:
    """As of GNU parallel: the name and a tab, the first job first."""
    done = ramherd.run("run", "-k", "--tag", "--", *SLOW_FIRST, stdin="1\n2\n")
    assert done.stdout == "1-1\tout-1\n2-2\tout-2\n"
    assert "1-1\terr-1\n" in done.stderr


def test_one_job_passes_through(ramherd: Ramherd) -> None:
    """Byte for byte and at once, without a tag; the exit code is that of the herd."""
    command = "printf 'a\\000b'; echo trouble >&2; exit 4"
    done = ramherd.run("run", "--", "sh", "-c", stdin=command)
    assert (done.returncode, done.stdout) == (1, "a\0b")
    assert "trouble\n" in done.stderr

    slow = "printf part; sleep 60"
    started = ramherd.start("run", "--grace", "1s", "--", "sh", "-c", stdin=slow)
    await_(lambda: started.out.read_text() == "part", "it is printed while the job runs")
    started.signal(signal.SIGINT)
    assert started.wait() == 130


def test_quiet_and_json_show_none_of_it(ramherd: Ramherd) -> None:
    """`--quiet` prints our lines on standard output, `--json` the object alone."""
    quiet = ramherd.run("run", "--quiet", "--", "echo", stdin="secret\n")
    assert "1 of 1 job done" in quiet.stdout
    as_json = ramherd.run("run", "--json", "--", "echo", stdin="secret\n")
    assert json.loads(as_json.stdout)["done"] == 1
    assert "secret\n" not in quiet.stdout + as_json.stdout + quiet.stderr + as_json.stderr
    for flags, other in ((("--tag", "--json"), "--json"), (("-k", "-q"), "--quiet")):
        refused = ramherd.run("run", *flags, "--", "echo", stdin="x\n")
        assert refused.returncode == 2
        assert f"cannot be used with {other}, which shows no output" in refused.stderr


def test_much_output_is_whole(ramherd: Ramherd) -> None:
    """More than a pipe holds, from two jobs at once, with a reader that comes late."""
    command = [*RUN, "-k", "--", "seq"]
    with subprocess.Popen(
        command, env=ramherd.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    ) as herd:  # fmt: skip
        out, _ = herd.communicate("300000\n200000\n", timeout=60)
    assert out == "".join(f"{n}\n" for most in (300000, 200000) for n in range(1, most + 1))


def test_a_reader_that_goes_away_ends_nothing(ramherd: Ramherd, tmp_path: Path) -> None:
    """All jobs are done, as without one; a full disk is named."""
    command = [*RUN, "--", "sh", "-c"]
    script = "seq 100000; touch {}"
    text = "".join(script.format(tmp_path / name) + "\n" for name in "ab")
    with subprocess.Popen(
        command, env=ramherd.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as herd:  # fmt: skip
        assert herd.stdin is not None
        assert herd.stdout is not None
        herd.stdin.write(text)
        herd.stdin.close()
        herd.stdout.close()
        assert herd.wait(30) == 0
    assert {path.name for path in tmp_path.iterdir()} >= {"a", "b"}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, env=ramherd.env, input="echo x\n", stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=30, check=False,
        )  # fmt: skip
    assert "cannot write to descriptor 1: No space left on device" in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_standard_output_is_not_a_full_disk(ramherd: Ramherd, unbuffered: str) -> None:
    """Whether or not Python has a buffer; `ramherd prune` would not help."""
    ramherd.env["PYTHONUNBUFFERED"] = unbuffered
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ramherd", "config"], env=ramherd.env, stdout=full,
            stderr=subprocess.PIPE, text=True, timeout=30, check=False,
        )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr == "ramherd: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize(("given", "is_told"), [("", True), ("9", True), ("4", False)])
def test_a_low_limit_of_open_files_is_told(ramherd: Ramherd, given: str, is_told: bool) -> None:
    """It lowers how many jobs run at a time: one line, unless as many were asked for anyway."""
    ramherd.env["RAMHERD_MAX_PARALLEL"] = given
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 100; exec "$@"', "sh", sys.executable, "-m", "ramherd", "run", "-"],
        env=ramherd.env, input='{"command": "true"}', capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    line = (
        "ramherd: at most 4 runs at a time, because only 100 files may be open\n"
        "  hint: raise the limit: ulimit -n 4096\n"
    )
    assert done.stderr.count(line) == int(is_told)


def test_retried_jobs_show_their_last_run(ramherd: Ramherd, tmp_path: Path) -> None:
    """What the first one printed is left to `ramherd events` and the logs on disk."""
    once = f"echo run $RAMHERD_ATTEMPT; mkdir {tmp_path / 'tried'} 2>/dev/null && exit 1; exit 0"
    jobs = [{"name": "again", "command": once, "retries": 1}, {"name": "b", "command": "echo b"}]
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    done = ramherd.run("run", "-", "--keep-order", stdin=text)
    assert done.stdout == "run 2\nb\n"


def test_a_terminal_has_lines_above_the_table(ramherd: Ramherd) -> None:
    """Line by line, each with its job in a column; whole lines only."""
    jobs = [{"name": "first", "command": "printf half; sleep 0.5; echo ' a line'"},
            {"name": "b", "command": "echo b; sleep 1"}]  # fmt: skip
    path = ramherd.state.with_name("jobs.jsonl")
    path.write_text("".join(json.dumps(job) + "\n" for job in jobs))
    with closing(open_terminal([*RUN, str(path)], ramherd.env)) as shown:
        shown.expect("b     | b\r\n")
        shown.expect("first | half a line\r\n")
        shown.expect("2 of 2 jobs done")
        assert shown.wait() == 0


def test_a_pipe_on_a_terminal_has_no_table(ramherd: Ramherd) -> None:
    """The reader of the pipe prints there too: its lines would be drawn over."""
    script = f"seq 3 | {shlex.join(RUN)} -- sh -c 'sleep 0.5; echo val {{}}' | cat"
    with closing(open_terminal(["sh", "-c", script], ramherd.env)) as shown:
        text = shown.expect("3 of 3 jobs done")
        assert shown.wait() == 0
    assert sorted(text.split("\r\n")[:3]) == ["val 1", "val 2", "val 3"]
    assert BEGIN_FRAME not in text


def test_a_file_beside_a_terminal_has_a_table(ramherd: Ramherd) -> None:
    """Nothing else is printed there: standard output is in the file."""
    out = ramherd.state.with_name("out")
    script = f"seq 3 | {shlex.join(RUN)} -- sh -c 'sleep 0.5; echo val {{}}' > {out}"
    with closing(open_terminal(["sh", "-c", script], ramherd.env)) as shown:
        assert BEGIN_FRAME in shown.expect("3 of 3 jobs done")
        assert shown.wait() == 0
    assert sorted(out.read_text().splitlines()) == ["val 1", "val 2", "val 3"]


def test_a_single_job_on_a_terminal_has_no_table(ramherd: Ramherd) -> None:
    """What it prints is all that is seen, then the summary."""
    path = ramherd.state.with_name("jobs.jsonl")
    path.write_text(json.dumps({"name": "one", "command": "printf question; sleep 0.3; echo !"}))
    with closing(open_terminal([*RUN, str(path)], ramherd.env)) as shown:
        assert shown.expect("!\r\n") == "question!\r\n"
        assert "1 of 1 job done" in shown.expect("job done")
