"""The memory that runs of each class need: read once, and updated from runs that are done."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ramherd.act.run import LiveRun
from ramherd.core.memory import Estimate
from ramherd.core.model import Job
from ramherd.decide.governor.classes import ClassRecord, RunSummary, estimate, learn
from ramherd.store.classes import ClassKey, read_class
from ramherd.store.protocol import Store

# The agent of jobs that run a command, in the key of their class.
COMMAND = "command"
# Shorter runs were measured only once or twice.
SHORTEST_S = 1.0


@dataclass
class Classes:
    """`estimates` is what the governor reads, by label. Scales other than 1 scale the shipped
    priors, for agents that are faster and smaller than real ones.
    """

    time_scale: float = 1.0
    size_scale: float = 1.0
    estimates: dict[str, Estimate] = field(default_factory=dict)
    _records: dict[str, ClassRecord] = field(default_factory=dict)

    def read(self, store: Store, jobs: Iterable[Job]) -> None:
        for key in {class_of(job) for job in jobs}:
            record = read_class(store, key)
            prior = scaled(record.prior, self.size_scale)
            self._set(label_of(key), replace(record, prior=prior))

    def learn(self, run: LiveRun, at_s: float) -> tuple[ClassKey, RunSummary] | None:
        """The record to store for a run that is done; None if the run was too short."""
        summary = summary_of(run, at_s, SHORTEST_S / self.time_scale)
        if summary is None:
            return None
        self._set(run.label, learn(self._records.get(run.label, ClassRecord()), summary))
        return class_of(run.job), summary

    def _set(self, label: str, record: ClassRecord) -> None:
        self._records[label] = record
        self.estimates[label] = estimate(record)


def class_of(job: Job) -> ClassKey:
    agent = job.brief.agent if job.brief is not None else COMMAND
    # The store accepts UTF-8 only.
    project = job.cwd.encode(errors="backslashreplace").decode()
    return ClassKey(agent, project, job.label)


def label_of(key: ClassKey) -> str:
    return "\0".join(key)


def key_of(label: str) -> ClassKey:
    return ClassKey(*label.split("\0"))


def scaled(prior: Estimate, size: float) -> Estimate:
    sizes = (prior.base_bytes, prior.sd_bytes, prior.peak_bytes)
    base, sd, peak = (int(value / size) for value in sizes)
    return replace(prior, base_bytes=base, sd_bytes=sd, peak_bytes=peak)


def summary_of(run: LiveRun, at_s: float, shortest_s: float = SHORTEST_S) -> RunSummary | None:
    """None if the run was too short to learn from."""
    ran_s, seen = at_s - run.started_s, run.usage
    if ran_s < shortest_s or not seen.number:
        return None
    mean = seen.sum / seen.number
    spread = math.sqrt(max(seen.squares / seen.number - mean**2, 0.0))
    return RunSummary(int(mean), int(spread), run.reading.peak_bytes, round(ran_s, 1))
