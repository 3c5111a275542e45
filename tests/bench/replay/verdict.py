"""What ramherd promises, held against what came of it."""

from collections.abc import Iterator

from bench.replay.outcome import Outcome


def faults(outcome: Outcome) -> Iterator[str]:
    if outcome.was_stopped:
        yield f"not done after {outcome.makespan_s:.0f} s"
    if outcome.oom_kills:
        yield f"{outcome.oom_kills} OOM kills"
    if lost := outcome.work.jobs - outcome.work.done:
        yield f"jobs lost: {lost}"
    if outcome.left:
        yield f"processes left: {outcome.left}"
