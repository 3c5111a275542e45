"""The agents of a service, whose jobs come at any time: loaded with the first of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ramherd.act.executor import Executor
from ramherd.decide.warm import ReusePolicy
from ramherd.model import Job, Policy
from ramherd.queue.agent_rows import herd_costs, said_of
from ramherd.queue.store import Store

if TYPE_CHECKING:
    from ramherd.driving import Driving
    from ramherd.warming import Warming


@dataclass
class Agents:
    """`inherited` is the environment that a job's runs will have, `reuse` how long warm processes
    serve.
    """

    store: Store
    policy: Policy
    reuse: ReusePolicy
    inherited: Callable[[Job], Mapping[str, str]]
    driving: "Driving | None" = None

    def warm(self, executor: Executor) -> "Warming":
        from ramherd.warming import Warming  # noqa: PLC0415

        return Warming(executor, self.reuse)

    def drive(self) -> "Driving":
        """Programs are looked for at each start: what is installed changes in months."""
        if self.driving is None:
            from ramherd.agentjobs import find_program_of  # noqa: PLC0415 - 1 MB
            from ramherd.costs import Account  # noqa: PLC0415
            from ramherd.driving import Driving, Records  # noqa: PLC0415

            records = Records(
                find=lambda job: find_program_of(job, self.inherited(job).get("PATH")),
                account=lambda herd: Account(*herd_costs(self.store, herd)),
                said=lambda job: said_of(self.store, job),
                env=self.inherited,
            )
            self.driving = Driving(records, self.policy)
        return self.driving
