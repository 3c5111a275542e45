"""Reports of agents whose `ramherd run` died: their output is read again."""

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ramherd.act.run import LiveRun
from ramherd.core.model import RunEnd
from ramherd.core.policies import Policy
from ramherd.core.run_phase import Ended
from ramherd.store.herds import set_said
from ramherd.store.interrupted_herds import read_statuses, read_uncounted_runs
from ramherd.store.protocol import Store
from ramherd.store.service_herds import read_said

if TYPE_CHECKING:
    from ramherd.supervisor.agent_runs import AgentRuns


def count_lost_runs(store: Store, state: Path, herd: str) -> None:
    """Records sessions, turns and costs of runs whose end was not recorded. A second call finds no
    such run. If the output is gone, the last recorded values count.
    """
    runs = read_uncounted_runs(store, herd)
    if not runs:
        return
    from ramherd.supervisor.agent_runs import AgentRuns, JobRecords  # noqa: PLC0415 - with agents
    from ramherd.supervisor.check_agents import find_program_of  # noqa: PLC0415

    records = JobRecords(
        find=lambda job: find_program_of(job, None),
        cost_limit=lambda _herd: None,
        said=partial(read_said, store),
    )
    agents = AgentRuns(records, Policy())
    jobs = {status.job.id: status.job for status in read_statuses(store, herd)}
    for job, (run, attempt) in runs.items():
        live = LiveRun(run, jobs[job], attempt, state / "runs", 0.0, phase=Ended(None, None))
        with suppress(FileNotFoundError):
            count_lost_run(store, agents, live)
    store.commit()


def count_lost_run(store: Store, agents: "AgentRuns", live: LiveRun) -> None:
    (live.dir / "out").stat()
    said = read_said(store, live.job.id) or {}
    agents.adopt(live, resumed=bool(said.get("run", {}).get("resumed")))
    agents.end(live, RunEnd.LOST, most_bytes=0)
    assert live.agent_run is not None
    record = live.agent_run.next_record()
    record["run"].pop("leaves")
    set_said(store, live.job.id, {**said, **record})
