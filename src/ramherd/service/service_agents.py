"""The agents of a service, whose jobs come at any time: loaded with the first job that has one."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ramherd.act.environments import HerdEnvironments
from ramherd.core.policies import Policy, ReusePolicy
from ramherd.store.inputs import input_path
from ramherd.store.prices import read_prices
from ramherd.store.protocol import Store
from ramherd.store.service_herds import read_herd_costs, read_open_agents, read_said
from ramherd.supervisor.job_states import AgentParts
from ramherd.system.environ import read_all

if TYPE_CHECKING:
    from ramherd.supervisor.agent_runs import AgentRuns
    from ramherd.supervisor.cost_limit import CostLimit


@dataclass
class ServiceAgents:
    store: Store
    state: Path
    policy: Policy
    environments: HerdEnvironments
    reuse: ReusePolicy = field(default_factory=ReusePolicy)
    parts: AgentParts = field(default_factory=AgentParts)

    def load(self) -> "AgentRuns":
        """Programs are looked up at each start of a run: over months, other ones are installed."""
        if self.parts.runs is None:
            from ramherd.supervisor.agent_runs import AgentRuns, JobRecords  # noqa: PLC0415
            from ramherd.supervisor.check_agents import find_program_of  # noqa: PLC0415 - 1 MB

            records = JobRecords(
                find=lambda job: find_program_of(job, self.environments.read(job).get("PATH")),
                cost_limit=self._read_cost_limit,
                said=lambda job: read_said(self.store, job),
                env=self.environments.read,
                input=lambda job, field: read_all(str(input_path(self.state, job.id, field))),
            )
            self.parts.runs = AgentRuns(records, self.policy)
            self.read_limits()
            self.parts.runs.prices.load(read_prices(self.store))
        return self.parts.runs

    def read_limits(self) -> None:
        """The usage limits that an earlier service met, and users' requests since then."""
        if self.parts.runs is not None:
            from ramherd.store.usage_windows import read_windows  # noqa: PLC0415 - for agents only

            self.parts.runs.limits.load(read_windows(self.store))

    def _read_cost_limit(self, herd: str) -> "CostLimit | None":
        """Shared by the jobs that have not ended and whose agents enforce a limit."""
        from ramherd.agents import find_agent  # noqa: PLC0415
        from ramherd.supervisor.cost_limit import CostLimit  # noqa: PLC0415

        limit_usd, spent_usd = read_herd_costs(self.store, herd)
        if limit_usd is None:
            return None
        open_ = read_open_agents(self.store, herd)
        limited = [job for job, agent in open_ if find_agent(agent).holds_to_cost]
        return CostLimit(limit_usd, limited, spent_usd)
