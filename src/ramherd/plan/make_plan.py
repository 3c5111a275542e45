"""The plan: the answer, what binds first, and what would raise the number."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ramherd.core.policies import Policy
from ramherd.core.units import format_size
from ramherd.plan.agent_groups import AgentGroup, Pool
from ramherd.plan.forecast import Alone, Forecast, Site, forecast, forecast_alone
from ramherd.plan.published_shape import CPU_SHARE
from ramherd.plan.request import PlanHost, Question
from ramherd.plan.sizes import (
    IDLE_SHARE,
    PAGE_BYTES,
    RECLAIMED_BYTES,
    SWAP_USED_SHARE,
    ZRAM_RATIO,
    mcp_bytes_each,
    mcp_bytes_shared,
)

# The draws of each thing that would raise the number: their differences are large.
RAISE_DRAWS = 2
# A gain below this share is noise.
LEAST_GAIN = 0.03
# A herd without a given number is so many times what the memory holds: some always wait.
BACKLOG = 2.5
SEED = 1


class HostPlan(NamedTuple):
    """What one host, or several equal ones, take."""

    host: PlanHost
    hosts: int
    agents: int
    fixed_bytes: int
    forecast: Forecast


class Bound(NamedTuple):
    """A resource, and how many agents at once it allows; None where nobody can tell."""

    what: str
    at_once: float | None
    why: str


class Raise(NamedTuple):
    """A change, the number of agents at once with it, and how to make it."""

    what: str
    at_once: float
    gain: float
    how: str


class Plan(NamedTuple):
    question: Question
    groups: tuple[AgentGroup, ...]
    hosts: tuple[HostPlan, ...]
    alone: Alone
    # Agents that were planned with: those asked for, or a herd of which some always wait.
    agents: int
    at_once: float
    slowdown: float
    makespan_s: float
    bounds: tuple[Bound, ...]
    raises: tuple[Raise, ...]

    @property
    def first(self) -> Bound:
        """What binds first."""
        known = [bound for bound in self.bounds if bound.at_once is not None]
        return min(known, key=lambda bound: bound.at_once or 0.0)

    @property
    def waves(self) -> tuple[int, ...]:
        """A new agent starts when one ends; waves are how often the machine fills."""
        size = max(round(self.at_once), 1)
        full, rest = divmod(self.agents, size)
        return (size,) * full + ((rest,) if rest else ())


def flag_size(size_bytes: int) -> str:
    return format_size(size_bytes).replace(" ", "")


def percent(share: float) -> str:
    """Never 0 % or 100 % of a few hundred draws."""
    whole = round(share * 100)
    return f"{whole} %" if 0 < whole < 100 else "below 1 %" if whole <= 0 else "above 99 %"


def make_plan(
    question: Question,
    groups: Sequence[AgentGroup],
    costs: Sequence[Bound] = (),
    *,
    swap_bytes: int = 0,
) -> Plan:
    """`groups` have the agents of all hosts; `costs` is what binds beside memory and CPU."""
    groups = [with_servers(group, question) for group in groups]
    if question.agents is None:
        groups = fill(groups, question.hosts)
    agents = sum(group.number for group in groups)
    hosts = tuple(plan_hosts(question, groups))
    at_once = sum(one.forecast.at_once * one.hosts for one in hosts)
    first = hosts[0]
    alone_groups = groups if question.agents is not None else scaled(groups, round(at_once))
    share = share_of(alone_groups, first.agents if question.agents is not None else None)
    alone = forecast_alone(
        draw_pools(share), max(first.host.kill_bytes - fixed_alone(question, share), 1)
    )
    plan = Plan(
        question=question, groups=tuple(groups), hosts=hosts, alone=alone, agents=agents,
        at_once=at_once, slowdown=max(one.forecast.slowdown for one in hosts),
        makespan_s=max(one.forecast.makespan_s for one in hosts), bounds=(), raises=(),
    )  # fmt: skip
    bounds = (memory_bound(plan), cpu_bound(hosts), *costs)
    return plan._replace(bounds=bounds, raises=tuple(find_raises(plan, swap_bytes)))


def with_servers(group: AgentGroup, question: Question) -> AgentGroup:
    more = 0 if question.shares_mcp else mcp_bytes_each(question.mcp)
    leak = question.leak_bytes_per_s or group.leak_bytes_per_s
    return group._replace(more_bytes=more, leak_bytes_per_s=leak)


def fixed_bytes(question: Question) -> int:
    """What one host needs beside its agents."""
    shared = mcp_bytes_shared(question.mcp) if question.shares_mcp else 0
    return shared + question.pages * PAGE_BYTES


def fixed_alone(question: Question, groups: Sequence[AgentGroup]) -> int:
    """Without ramherd nothing is shared: the servers of a shared plan count for each agent."""
    servers = sum(group.number for group in groups) * mcp_bytes_each(question.mcp)
    return question.pages * PAGE_BYTES + (servers if question.shares_mcp else 0)


def fill(groups: Sequence[AgentGroup], hosts: Sequence[PlanHost]) -> list[AgentGroup]:
    budget = sum(host.budget_bytes for host in hosts)
    size = sum(group.size.base_bytes * group.number for group in groups)
    number = sum(group.number for group in groups)
    return scaled(groups, max(round(BACKLOG * budget * number / size), 2))


def scaled(groups: Sequence[AgentGroup], agents: int) -> list[AgentGroup]:
    number = sum(group.number for group in groups)
    return [
        group._replace(number=max(round(group.number * agents / number), 1)) for group in groups
    ]


def share_of(groups: Sequence[AgentGroup], agents: int | None) -> list[AgentGroup]:
    return list(groups) if agents is None else scaled(groups, agents)


def draw_pools(groups: Sequence[AgentGroup]) -> list[Pool]:
    return [group.draw_pool(SEED + at) for at, group in enumerate(groups)]


def plan_hosts(question: Question, groups: Sequence[AgentGroup]) -> Iterator[HostPlan]:
    """Each host takes agents in proportion to its budget; equal hosts are simulated once."""
    agents = sum(group.number for group in groups)
    fixed = fixed_bytes(question)
    taken = split(agents, [max(host.budget_bytes - fixed, 1) for host in question.hosts])
    equal: dict[tuple[PlanHost, int], int] = {}
    for host, number in zip(question.hosts, taken, strict=True):
        equal[host, number] = equal.get((host, number), 0) + 1
    for (host, number), hosts in equal.items():
        if number:
            pools = draw_pools(scaled(groups, number) if number != agents else groups)
            found = forecast(pools, site_of(host, question, fixed))
            yield HostPlan(host, hosts, number, fixed, found)


def split(agents: int, budgets: Sequence[int]) -> list[int]:
    """Whole numbers in proportion; the rest goes to the largest remainders, first hosts first."""
    total = sum(budgets)
    exact = [agents * budget / total for budget in budgets]
    taken = [int(part) for part in exact]
    order = sorted(range(len(budgets)), key=lambda at: (taken[at] - exact[at], at))
    for at in order[: agents - sum(taken)]:
        taken[at] += 1
    return taken


def site_of(host: PlanHost, question: Question, fixed: int) -> Site:
    return Site(
        budget_bytes=max(host.budget_bytes - fixed, 1),
        kill_bytes=max(host.kill_bytes - fixed, 1),
        max_parallel=question.max_parallel,
    )


def memory_bound(plan: Plan) -> Bound:
    mean = sum(group.size.base_bytes * group.number for group in plan.groups) / plan.agents
    budget = sum((one.host.budget_bytes - one.fixed_bytes) * one.hosts for one in plan.hosts)
    why = f"{format_size(budget)} for agents of {format_size(mean)} on average, with their bursts"
    # All run at once: more may fit, but nobody asked.
    more = budget / mean if plan.at_once >= plan.agents else plan.at_once
    return Bound("memory", max(more, plan.at_once), why)


def cpu_bound(hosts: Sequence[HostPlan]) -> Bound:
    cores = [one.host.cores for one in hosts]
    if any(number is None for number in cores):
        return Bound("CPU", None, f"{CPU_SHARE:g} of a core an agent; pass --cores for a number")
    total = sum((one.host.cores or 0) * one.hosts for one in hosts)
    return Bound(
        "CPU", total / CPU_SHARE, f"{total} cores, {CPU_SHARE:g} of a core an agent on average"
    )


def find_raises(plan: Plan, swap_bytes: int) -> Iterator[Raise]:
    """Each change alone, simulated; the ones that change nothing are left out."""
    if plan.at_once >= plan.agents:
        return
    first = plan.hosts[0]
    question, host = plan.question, first.host
    yield from gains(plan, "twice the RAM", f"--ram {flag_size(2 * host.ram_bytes)}",
                     question._replace(hosts=(grown(host, host.ram_bytes),)))  # fmt: skip
    if question.mcp and not question.shares_mcp:
        yield from gains(plan, "one copy of each MCP server for all agents", "--share",
                         question._replace(shares_mcp=True, hosts=(host,)))  # fmt: skip
    if not swap_bytes:
        zram = int(
            min(host.ram_bytes / 2 * SWAP_USED_SHARE, first.forecast.at_once * RECLAIMED_BYTES)
            * IDLE_SHARE * (1 - 1 / ZRAM_RATIO)
        )  # fmt: skip
        bigger = host._replace(budget_bytes=host.budget_bytes + zram)
        yield from gains(plan, "zram of half of the RAM (up to; cgroup v2 only)", "see below",
                         question._replace(hosts=(bigger,)))  # fmt: skip
    number = sum(one.hosts for one in plan.hosts)
    yield from gains(plan, f"{number + 1} such hosts instead of {number}",
                     f"--hosts {number + 1}x{flag_size(host.ram_bytes)}",
                     question._replace(hosts=(host,)), hosts=(number + 1) / number)  # fmt: skip


def grown(host: PlanHost, more_bytes: int) -> PlanHost:
    budget = host.budget_bytes + int(Policy().budget_share * more_bytes)
    return host._replace(ram_bytes=host.ram_bytes + more_bytes, budget_bytes=budget)


def gains(
    plan: Plan, what: str, how: str, changed: Question, hosts: float = 1.0
) -> Iterator[Raise]:
    """With the agents of the first host: what it gains, all such hosts gain."""
    first = plan.hosts[0]
    number = sum(one.hosts for one in plan.hosts)
    groups = [with_servers(group, changed) for group in scaled(plan.groups, first.agents)]
    found = forecast(
        draw_pools(groups), site_of(changed.hosts[0], changed, fixed_bytes(changed)), RAISE_DRAWS
    )
    at_once = min(found.at_once * number * hosts, plan.agents)
    if at_once - plan.at_once >= max(LEAST_GAIN * plan.at_once, 0.5):
        yield Raise(what, at_once, at_once - plan.at_once, how)
