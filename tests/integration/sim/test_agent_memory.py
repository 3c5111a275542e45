"""The fake agent's memory is real: measured from outside, in bytes."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.sim.procs import SRC, Agent, StartAgent, anon_bytes, children, is_alive, wait_for

MB = 10**6
# The interpreter goes on making and freeing small objects after its size was taken off the profile.
NEAR = 1.5 * MB


def is_near(pid: int, mb: float) -> bool:
    return abs(anon_bytes(pid) - mb * MB) < NEAR


def wait_for_child(agent: Agent, mb: float) -> int:
    """The pid of the tool call, once it holds `mb`."""
    wait_for(
        lambda: any(anon_bytes(child) > mb * MB for child in children(agent.pid)),
        f"a child with {mb} MB",
    )
    (child,) = children(agent.pid)
    return child


def test_memory_follows_the_profile_up_and_down(
    agent: StartAgent, trace: Callable[..., Path]
) -> None:
    """Each sample is held in turn, and what is above the next one is given back."""
    running = agent("--traces", trace(20, 60, 30, 45, 0), "--time", 0.3).ready()

    for mb in (20, 60, 30, 45):
        wait_for(lambda mb=mb: is_near(running.pid, mb), f"{mb} MB")  # type: ignore[misc]
    assert running.end() == 0
    assert "done trace_s=4.0 executed_s=4.0 redone_s=0.0 attempts=1\n" in running.out


@pytest.mark.parametrize("python", [(), ("-S", "-I", str(SRC / "ramherd" / "sim" / "agent.py"))])
def test_ready_means_the_first_sample_is_held(agent: StartAgent, python: tuple[str, ...]) -> None:
    """Exactly: no huge pages, and the interpreter counts as part of the profile."""
    running = agent("--flat", "40MB", "--for", 60, python=python).ready()

    assert is_near(running.pid, 40)


def test_size_and_time_are_scaled(agent: StartAgent, trace: Callable[..., Path]) -> None:
    """400 MB for 100 s are, with these factors, 40 MB for 0.2 s."""
    running = agent("--traces", trace(*[400] * 101), "--size", 0.1, "--time", 0.002).ready()

    assert is_near(running.pid, 40)
    assert running.end() == 0
    assert "trace_s=100.0" in running.out


def test_a_synthetic_profile_needs_no_file(agent: StartAgent) -> None:
    """Built in: a seed and an index."""
    running = agent("--synthetic", 1, "--index", 1, "--size", 0.05, "--time", 0.001)

    assert running.end() == 0
    assert "trace_s=190.0" in running.out


def test_a_leak_comes_on_top_and_is_never_given_back(
    agent: StartAgent, trace: Callable[..., Path]
) -> None:
    """The profile falls by 40 MB, the leak goes on from where it was."""
    running = agent("--traces", trace(60, 20, 20), "--leak", "25MB", "--time", 0.8).ready()

    wait_for(lambda: anon_bytes(running.pid) > 66 * MB, "60 MB and a part of the leak")
    wait_for(lambda: anon_bytes(running.pid) < 60 * MB, "the fall of the profile")
    assert anon_bytes(running.pid) > (20 + 0.8 * 25) * MB - NEAR


def test_bursts_are_held_by_a_child_that_ends_with_them(
    agent: StartAgent, trace: Callable[..., Path]
) -> None:
    """The agent keeps its plateau; the child has the rest and is gone afterwards."""
    profile = trace(20, 20, 70, 70, 20, 20)
    running = agent("--traces", profile, "--time", 0.2, "--burst-in-child").ready()

    child = wait_for_child(running, 50)
    assert is_near(running.pid, 20)
    sizes = []

    def is_gone() -> bool:
        sizes.append(anon_bytes(child))
        return not children(running.pid)

    wait_for(is_gone, "the end of the child")
    # 50 MB and the forked interpreter's 6; the agent's own 20 MB are not counted twice.
    assert max(sizes) < 62 * MB
    assert running.end() == 0


def test_an_agent_goes_on_when_its_tool_call_is_killed(
    agent: StartAgent, trace: Callable[..., Path]
) -> None:
    """As when the kernel kills at a memory limit: the tool call fails, the agent does not."""
    profile = trace(20, 20, 70, 80, 20, 20, 20)
    running = agent("--traces", profile, "--time", 0.1, "--burst-in-child").ready()

    os.kill(wait_for_child(running, 50), signal.SIGKILL)

    assert running.end() == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_tool_call_does_not_outlive_its_agent(
    agent: StartAgent, trace: Callable[..., Path], number: signal.Signals
) -> None:
    """However the agent ends."""
    profile = trace(20, 20, *[70] * 30, *[20] * 40)
    running = agent("--traces", profile, "--time", 0.1, "--burst-in-child").ready()
    child = wait_for_child(running, 50)

    running.proc.send_signal(number)

    assert running.end() in (-signal.SIGKILL, 143)
    wait_for(lambda: not is_alive(child), "the end of the child")
