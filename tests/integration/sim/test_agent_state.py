"""Progress outlives the fake agent: resumed work goes on, and work done twice is counted."""

import signal
from pathlib import Path

import pytest

from integration.sim.procs import Agent, StartAgent, wait_for
from ramherd.core.errors import RamherdError
from ramherd.sim.agent_state import (
    TraceProgress,
    WorkLog,
    parse_progress,
    read_progress,
    render_progress,
)

# 1000 trace seconds in half a second, noted every 200; no checkpoint falls on one of these.
RUN = ("--flat", "10MB", "--for", "1000", "--time", "0.0005", "--checkpoint", "130")
RESUMED = {"RAMHERD_RESUMED": "1"}


def executed_s(running: Agent) -> float:
    return float(running.out.split("executed_s=")[1].split()[0])


def interrupt(running: Agent, state: Path, number: signal.Signals) -> TraceProgress:
    """End an attempt after its first checkpoint."""
    running.ready()
    wait_for(lambda: read_progress(str(state)).resume_s > 0, "a checkpoint")
    running.proc.send_signal(number)
    running.end()
    return read_progress(str(state))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_resumed_attempt_goes_on_from_the_last_checkpoint(
    agent: StartAgent, tmp_path: Path, number: signal.Signals
) -> None:
    """Whatever ended the one before; only what came after the checkpoint is done twice."""
    state = tmp_path / "state"
    before = interrupt(agent(*RUN, "--state", state), state, number)

    second = agent(*RUN, "--state", state, env=RESUMED)

    assert second.end() == 0
    assert (before.done, read_progress(str(state)).done) == (0, 1)
    redone_s = before.executed_s - before.resume_s
    assert 0 < redone_s <= 130
    assert executed_s(second) == pytest.approx(1000 + redone_s, abs=0.11)
    assert f"redone_s={redone_s:.1f} attempts=2\n" in second.out


def test_an_attempt_that_is_not_resumed_starts_over(agent: StartAgent, tmp_path: Path) -> None:
    """All the work of the attempt before it was for nothing, and is counted so."""
    state = tmp_path / "state"
    before = interrupt(agent(*RUN, "--state", state), state, signal.SIGTERM)

    second = agent(*RUN, "--state", state)

    assert second.end() == 0
    assert executed_s(second) == pytest.approx(1000 + before.executed_s, abs=0.11)
    assert before.executed_s >= 130


def test_the_first_attempts_can_fail(agent: StartAgent, tmp_path: Path) -> None:
    """Two fail with exit 1 after they were ready, the third succeeds."""
    args = ("--flat", "10MB", "--for", "0.1", "--state", tmp_path / "state", "--fail-first", 2)

    assert [agent(*args).end() for _ in range(3)] == [1, 1, 0]


def test_a_state_file_is_read_back_as_written() -> None:
    """Text that a person can read."""
    progress = TraceProgress(resume_s=10.0, executed_s=12.5, attempts=2, done=1)

    assert parse_progress(render_progress(progress)) == progress


@pytest.mark.parametrize("text", ["", "{}", "resume_s x\nexecuted_s 1\nattempts 1\ndone 0\n"])
def test_a_file_that_is_no_state_is_named(tmp_path: Path, text: str) -> None:
    """Not taken for a first attempt, which would hide lost progress."""
    path = tmp_path / "state"
    path.write_text(text)

    with pytest.raises(RamherdError, match=f"{path} is not a state file"):
        read_progress(str(path))


def test_progress_counts_from_checkpoint_to_checkpoint(tmp_path: Path) -> None:
    """A tool call that was open is lost; what was executed is not forgotten."""
    path = str(tmp_path / "state")
    journal = WorkLog(path, checkpoint_s=10, resumed=False)
    journal.record(27.5)
    journal.save()

    assert read_progress(path) == TraceProgress(20, 27.5, 1)
    resumed = WorkLog(path, checkpoint_s=10, resumed=True)
    resumed.record(25)
    assert resumed.progress == TraceProgress(20, 32.5, 2)


def test_without_checkpoints_nothing_is_lost(tmp_path: Path) -> None:
    """Each noted second is a place to go on from."""
    journal = WorkLog(str(tmp_path / "state"), checkpoint_s=0, resumed=False)
    journal.record(27.5)

    assert journal.progress.resume_s == 27.5
