"""The fake agent misbehaves exactly as asked."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.sim.procs import Agent, StartAgent, is_alive

SHORT = ("--flat", "10MB", "--for", "0.2")
LONG = ("--flat", "10MB", "--for", "60")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_with_the_usual_code(
    agent: StartAgent, number: signal.Signals, code: int
) -> None:
    """Cleanly: no traceback, no `done`."""
    running = agent(*LONG).ready()

    running.proc.send_signal(number)

    assert running.end() == code
    assert running.err == ""
    assert "done" not in running.out


def test_with_ignore_term_it_goes_on_to_its_end(agent: StartAgent) -> None:
    """Only KILL, or its own end, ends it."""
    running = agent(*SHORT, "--ignore-term").ready()

    running.proc.send_signal(signal.SIGTERM)

    assert running.end() == 0
    assert "done" in running.out


def test_it_can_die_at_birth(agent: StartAgent) -> None:
    """Before it is ready, with the code asked for."""
    running = agent("--die-at-birth", 7)

    assert running.end() == 7
    assert running.out == ""


def test_a_helper_stays_in_a_session_of_its_own(
    agent: StartAgent, helper_pid: Callable[[Agent], int]
) -> None:
    """Outside the agent's session, no child of it, and alive after its end, for a bounded time."""
    running = agent(*SHORT, "--helper", 60)
    helper = helper_pid(running)

    assert os.getsid(helper) not in (os.getsid(0), running.pid)
    assert running.end() == 0
    assert is_alive(helper)
    assert Path(f"/proc/{helper}/cmdline").read_bytes() == b"sleep\0" + b"60\0"


def test_a_helper_of_a_stubborn_agent_ignores_term_too(
    agent: StartAgent, helper_pid: Callable[[Agent], int]
) -> None:
    """The hardest thing to end: another session, and TERM is not enough."""
    helper = helper_pid(agent(*LONG, "--helper", 60, "--ignore-term"))
    status = Path(f"/proc/{helper}/status").read_text()
    ignored = int(status.split("SigIgn:")[1].split()[0], 16)

    assert ignored >> (signal.SIGTERM - 1) & 1


def test_a_second_copy_does_not_start(agent: StartAgent, tmp_path: Path) -> None:
    """Exit code 99 and a line that names the lock: seen anywhere, two copies were started."""
    lock = tmp_path / "lock"
    agent(*LONG, "--lock", lock).ready()

    second = agent(*LONG, "--lock", lock)

    assert second.end() == 99
    assert second.err == f"agent: another copy of this agent is running: it holds {lock}\n"
    assert second.out == ""


def test_the_lock_is_free_after_a_kill_even_if_a_helper_lives(
    agent: StartAgent, helper_pid: Callable[[Agent], int], tmp_path: Path
) -> None:
    """A helper is no second copy."""
    lock = tmp_path / "lock"
    first = agent(*LONG, "--lock", lock, "--helper", 60)
    helper = helper_pid(first)
    first.proc.kill()
    first.end()

    assert agent(*SHORT, "--lock", lock).end() == 0
    assert is_alive(helper)


@pytest.mark.parametrize("size_bytes", [1, 80, 1_000_001])
def test_a_flood_has_exactly_its_bytes(agent: StartAgent, size_bytes: int) -> None:
    """Between `ready` and `done`, which stand on lines of their own."""
    running = agent(*SHORT, "--flood", f"{size_bytes}B")

    assert running.end() == 0
    flood, _, _ = running.out.removeprefix("ready\n").rpartition("done ")
    assert len(flood) == size_bytes
    assert flood.endswith("\n")


@pytest.mark.parametrize(
    ("args", "what"),
    [
        ((), "one of --traces, --synthetic and --flat"),
        (("--flat", "1MB", "--synthetic", "1"), "one of --traces, --synthetic and --flat"),
        (("--flat", "10MB"), "--flat needs --for"),
        (("--flat", "10 apples", "--for", "1"), "unknown unit"),
        ((*SHORT, "--time", "0"), "not above zero"),
        ((*SHORT, "--index", "-1"), "below zero"),
        ((*SHORT, "--fail-first", "1"), "--fail-first needs --state"),
    ],
)
def test_wrong_options_are_a_usage_error(
    capsys: pytest.CaptureFixture[str], args: tuple[str, ...], what: str
) -> None:
    """Exit 2 with one line that says what."""
    from ramherd.sim.agent import parse_options

    with pytest.raises(SystemExit) as caught:
        parse_options(args)

    assert caught.value.code == 2
    assert what in capsys.readouterr().err


def test_a_trace_that_is_not_there_is_a_usage_error(
    agent: StartAgent, trace: Callable[..., Path]
) -> None:
    """The file and the index are named."""
    path = trace(10, 10)
    running = agent("--traces", path, "--index", 1)

    assert running.end() == 2
    assert f"{path} has no trace 1" in running.err
