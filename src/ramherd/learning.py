"""What a run that was done says about the next one of its class."""

import math

from ramherd.act.executor import LiveRun
from ramherd.decide.governor.classes import RunSummary
from ramherd.queue.classes import ClassKey

# A command is its own agent until agents are driven; what it works on is its directory.
COMMAND = "command"
# Shorter runs were hardly looked at.
SHORTEST_S = 1.0


def class_of(run: LiveRun) -> ClassKey:
    return ClassKey(COMMAND, run.job.cwd, run.job.label)


def summary_of(run: LiveRun, at_s: float) -> RunSummary | None:
    """None of a run that was too short to say anything."""
    ran_s, seen = at_s - run.started_s, run.moments
    if ran_s < SHORTEST_S or not seen.number:
        return None
    mean = seen.sum / seen.number
    spread = math.sqrt(max(seen.squares / seen.number - mean**2, 0.0))
    return RunSummary(int(mean), int(spread), run.reading.peak_bytes, round(ran_s, 1))
