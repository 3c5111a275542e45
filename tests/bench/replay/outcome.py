"""What came of a contest, from the agents' state files and the samples."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.replay.herd import AgentJob
from ramherd.sim.agent_state import TraceProgress, read_progress


@dataclass(frozen=True, slots=True)
class Work:
    """Counted by the agents themselves, in seconds of trace."""

    jobs: int
    done: int
    attempts: int
    begun: int
    done_s: float
    redone_s: float

    @property
    def redone_share(self) -> float:
        return self.redone_s / self.done_s if self.done_s else 0.0


def read_work(jobs: Sequence[AgentJob]) -> Work:
    return add_up([(job.trace_s, read_progress(str(job.state))) for job in jobs])


def add_up(pairs: Sequence[tuple[float, TraceProgress]]) -> Work:
    """Of a job that is not done, only what is beyond its whole length was surely done twice."""
    return Work(
        jobs=len(pairs),
        done=sum(progress.done for _, progress in pairs),
        attempts=sum(progress.attempts for _, progress in pairs),
        begun=sum(progress.attempts > 0 for _, progress in pairs),
        done_s=sum(trace_s for trace_s, progress in pairs if progress.done),
        redone_s=sum(max(progress.executed_s - trace_s, 0.0) for trace_s, progress in pairs),
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    tool: str
    work: Work
    makespan_s: float
    # The oracle's, in the same time.
    oracle_s: float
    was_stopped: bool
    oom_kills: int
    left: int
    rss_bytes: int
    cpu_s: float
    samples: Sequence[tuple[float, int]]
    kill_times_s: Sequence[float]
    costs: Sequence[tuple[float, int, float]]

    @property
    def oracle_share(self) -> float:
        return self.oracle_s / self.makespan_s

    @property
    def peak_bytes(self) -> int:
        return max((used for _, used in self.samples), default=0)

    @property
    def stopped(self) -> int:
        """Attempts that the tool ended itself, to start the job again."""
        return max(self.work.attempts - self.work.begun - self.oom_kills, 0)
