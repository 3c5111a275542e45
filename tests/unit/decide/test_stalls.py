"""When a silent agent is reported."""

from ramherd.core.model import Reason, Why
from ramherd.decide.stalls import OutputSilence, find_stall, next_silence


def stall(
    silence: OutputSilence, at_s: float, *, uncounted_s: float = 0.0, after_s: float = 600.0,
    tool: str = "Bash",
) -> Reason | None:  # fmt: skip
    return find_stall(silence, at_s=at_s, uncounted_s=uncounted_s, stall_after_s=after_s, tool=tool)


def test_a_silent_agent_is_reported_once() -> None:
    """At the limit, with the tool in use."""
    silence = OutputSilence(100.0)

    assert stall(silence, 699.9) is None
    assert stall(silence, 700.0) == Reason(
        Why.STALLED, silent_s=600.0, doing="while it runs the tool Bash", limit_s=600.0
    )
    assert stall(OutputSilence(100.0, is_reported=True), 900.0) is None


def test_an_agent_between_tools_waits_for_its_api() -> None:
    """The sentence names the API."""
    found = stall(OutputSilence(0.04), 700.0, tool="")

    assert found == Reason(Why.STALLED, silent_s=700.0, doing="and runs no tool", limit_s=600.0)


def test_zero_is_never() -> None:
    """0 turns the warning off."""
    assert stall(OutputSilence(0.0), 1e9, after_s=0.0) is None


def test_held_time_is_no_silence() -> None:
    """A frozen run cannot print."""
    silence = OutputSilence(100.0, uncounted_s=50.0)

    assert silence.length_s(800.0, 150.0) == 600.0
    assert stall(silence, 799.0, uncounted_s=150.0) is None
    assert stall(silence, 800.0, uncounted_s=150.0) is not None


def test_output_ends_a_silence() -> None:
    """The next silence is reported again."""
    before = OutputSilence(100.0, 5.0, is_reported=True)
    after = next_silence(before, at_s=800.0, uncounted_s=7.0, has_printed=True)

    assert after == OutputSilence(800.0, 7.0)
    assert next_silence(before, at_s=800.0, uncounted_s=7.0, has_printed=False) is before


def test_a_wait_that_was_announced_is_no_silence() -> None:
    """The agent has reported how long it waits for its API."""
    after = next_silence(
        OutputSilence(0.0), at_s=100.0, uncounted_s=0.0, has_printed=True, wait_s=300.0
    )

    assert after == OutputSilence(400.0)
    assert stall(after, 999.0) is None
    assert stall(after, 1000.0) is not None
