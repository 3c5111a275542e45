"""The store cannot be written: its disk is full, or a file may not grow (`ulimit -f`)."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e.faults.conftest import Losses, fill, small_disk
from integration.conftest import Ramherd, Started, await_, make_ramherd, ours, pens

GRACE_S = 1.0
# With this the herd itself cannot be written.
LARGE_KIB = 256


def start_run(ramherd: Ramherd, jobs: str, *flags: str) -> Started:
    return ramherd.start(
        "run", "-", "--own", "--pen", ramherd.pen, "--grace", f"{GRACE_S}s", *flags, stdin=jobs
    )


def await_line(started: Started, text: str) -> None:
    await_(lambda: text in started.out.read_text() + started.err.read_text(), text)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_herd_on_a_full_disk(
    tmp_path: Path, losses: Losses, number: signal.Signals
) -> None:
    """Within the grace, with the summary, and nothing was announced that did not happen."""
    with small_disk(tmp_path / "state"):
        ramherd = make_ramherd(tmp_path, pens()[0])
        jobs = '{"name": "long", "command": "sleep 60"}\n' + (
            '{"name": "next", "command": "true", "after": ["first"]}\n'
            '{"name": "first", "command": "sleep 1"}\n'
        )
        started = start_run(ramherd, jobs, "--json")
        await_(lambda: len(ours("RAMHERD_RUN")) >= 2, "two run")
        fill(tmp_path / "state/filler")
        await_line(started, "disk is full")
        await_line(started, "done      first")
        began = time.monotonic()
        started.signal(number)
        assert started.wait() == 130
        assert time.monotonic() - began < GRACE_S + 5
        summary = json.loads(started.out.read_text())
        said = started.err.read_text()
    states = {result["job"]: result["state"] for result in summary["results"]}
    losses(
        f"{number.name} while the disk is full",
        announced_and_not_started=said.count("start     next"),
        wrong_states=sum(
            states[name] != state
            for name, state in (("first", "done"), ("next", "cancelled"), ("long", "cancelled"))
        ),
        left=len(ours("RAMHERD_RUN")),
    )
    assert "disk is full" in summary["store_error"]
    assert "Traceback" not in said


def fill_before_the_end(ramherd: Ramherd) -> Started:
    """A herd of one job whose result cannot be written: the disk is full when it ends."""
    go = ramherd.state.with_name("go")
    jobs = f'{{"name": "a", "command": "until [ -e {go} ]; do sleep 0.05; done; exit 4"}}\n'
    started = start_run(ramherd, jobs)
    await_(lambda: ours("RAMHERD_RUN"), "it runs")
    await_line(started, "start")
    fill(ramherd.state / "filler")
    go.touch()
    await_line(started, "trying to write the results")
    return started


def test_results_that_cannot_be_written_are_shown(tmp_path: Path, losses: Losses) -> None:
    """The disk fills up before the last end: the exit code and the summary are true."""
    with small_disk(tmp_path / "state"):
        started = fill_before_the_end(make_ramherd(tmp_path, pens()[0]))
        assert started.wait() == 1
        shown = started.err.read_text()
    assert "failed    a: exit status 4" in shown
    assert "these results are not in the store" in shown
    losses("the disk is full at the end of a herd", left=len(ours("RAMHERD_RUN")))


def test_results_are_written_when_there_is_room_again(tmp_path: Path, losses: Losses) -> None:
    """Within some seconds of the end nothing is lost."""
    with small_disk(tmp_path / "state"):
        ramherd = make_ramherd(tmp_path, pens()[0])
        started = fill_before_the_end(ramherd)
        (tmp_path / "state/filler").unlink()
        assert started.wait() == 1
        listed = ramherd.run("jobs", "--all", "--json")
    (job,) = map(json.loads, listed.stdout.splitlines())
    losses("the disk is full for a moment at the end of a herd", jobs=int(job["state"] != "failed"))


@pytest.mark.parametrize("kib", [64, 256, 1024])
def test_a_file_size_limit_is_an_ordinary_error(tmp_path: Path, losses: Losses, kib: int) -> None:
    """`ulimit -f`: before the first start an error, later a pause; never a signal."""
    ramherd = make_ramherd(tmp_path, pens()[0])
    jobs = "".join(f'{{"name": "j{n}", "command": "ulimit -f; sleep 0.1"}}\n' for n in range(400))
    text, out = tmp_path / "in", tmp_path / "out"
    text.write_text(jobs)
    command = [sys.executable, "-m", "ramherd", "run", "-", "--pen", ramherd.pen, "--grace", "1s"]
    limited = ["bash", "-c", f'ulimit -f {kib}; exec "$@"', "bash", *command]
    with text.open() as stdin, out.open("w") as log:
        herd = subprocess.Popen(limited, env=ramherd.env, stdin=stdin, stdout=log, stderr=log)
    await_(lambda: herd.poll() is not None or "ulimit -f" in out.read_text(), "it is noticed")
    if kib > LARGE_KIB:
        herd.send_signal(signal.SIGINT)
    code, said = herd.wait(20), out.read_text()
    assert code == (130 if kib > LARGE_KIB else 3), said
    assert "the file size limit (ulimit -f) is" in said
    assert "Traceback" not in said
    assert "a bug" not in said
    losses(f"ulimit -f {kib} KiB", left=len(ours("RAMHERD_RUN")))


def test_a_run_gets_the_default_action_for_a_file_too_large(ramherd: Ramherd) -> None:
    """SIGXFSZ ends a run that writes too much, as it does in a shell."""
    script = "ulimit -f 1; exec dd if=/dev/zero of=$TMPDIR/x bs=4096 count=10"
    summary = ramherd.json([{"name": "a", "command": script}])
    assert summary["results"][0]["reason"] == {"why": "signalled", "signal": signal.SIGXFSZ}
