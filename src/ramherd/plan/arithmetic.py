"""`ramherd plan --explain`: the arithmetic that circulates, computed for this plan with its inputs,
and what each line means for the runtimes of today.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ramherd.agents import find_agent
from ramherd.core.agent_names import AGENTS
from ramherd.core.units import GIB, MIB, format_size
from ramherd.plan.make_plan import Plan, percent, split
from ramherd.plan.sizes import SUBAGENT_BYTES

# Agents and the heap that advice gives them.
HEAP_TIERS = (
    ("1-3", 3, 4 * GIB),
    ("4-8", 8, 8 * GIB),
    ("8 or more", 8, 12 * GIB),
    ("8 or more", 8, 16 * GIB),
)
SMALL_HEAP_BYTES = 200 * MIB
# V8 reports this much more than was set, and a process has memory outside of its heap.
OUTSIDE_HEAP_BYTES = 128 * MIB
BATCH, QUEUE = 10, 40
CLAUDE_SUBAGENTS = 20


class Computation(NamedTuple):
    what: str
    computed: str
    means: str


def explain(plan: Plan) -> Iterator[Computation]:
    yield from explain_division(plan)
    yield from explain_heaps(plan)
    yield from explain_batches(plan)
    yield explain_subagents(plan)


def explain_division(plan: Plan) -> Iterator[Computation]:
    host = plan.hosts[0].host
    agents, free = plan.hosts[0].agents, host.ram_bytes - host.reserve_bytes
    each = free / agents
    mean = sum(group.size.base_bytes * group.number for group in plan.groups) / plan.agents
    yield Computation(
        "(total - reserve) / agents",
        f"({format_size(host.ram_bytes)} - {format_size(host.reserve_bytes)}) / {agents}"
        f" = {format_size(each)} each",
        f"an agent takes {format_size(mean)} on average: "
        + ("enough on average, not for bursts" if each > mean else "less than that"),
    )
    yield Computation(
        "ramherd's budget",
        f"80 % x {format_size(host.ram_bytes)} - {format_size(host.reserve_bytes)}"
        f" = {format_size(host.budget_bytes)}",
        f"{plan.hosts[0].forecast.at_once:.0f} at once: bursts are short and rarely coincide",
    )
    peak = plan.alone.peak_bytes
    yield Computation(
        "all at once, without a limit",
        f"highest second of the herd: {format_size(peak[0])} to {format_size(peak[2])} in 8 of 10"
        f" of {plan.alone.draws} draws",
        f"above {format_size(host.kill_bytes)} the kernel kills: {percent(plan.alone.risk)}",
    )


def explain_heaps(plan: Plan) -> Iterator[Computation]:
    host = plan.hosts[0].host
    heap = int((host.ram_bytes - host.reserve_bytes) / plan.hosts[0].agents) - OUTSIDE_HEAP_BYTES
    yield Computation(
        "heap + overhead per agent",
        f"{format_size(heap)} heap + {format_size(OUTSIDE_HEAP_BYTES)} outside of it"
        f" = {format_size(heap + OUTSIDE_HEAP_BYTES)}",
        "a heap limit works on Node alone (gemini, qwen, MCP servers); claude and opencode are "
        "Bun, codex is native: NODE_OPTIONS changes nothing there",
    )
    for agents, most, heap in HEAP_TIERS:
        worst = most * heap
        yield Computation(
            f"{format_size(heap)} heap for {agents} agents",
            f"{most} x {format_size(heap)} = {format_size(worst)} at worst",
            f"{worst / host.ram_bytes:.1f} times the RAM here; a limit is not a reservation, and "
            "it is not read by claude, codex and opencode",
        )
    yield from explain_small_heaps()


def explain_small_heaps() -> Iterator[Computation]:
    for name in AGENTS:
        agent = find_agent(name)
        if agent.floor_bytes:
            fits = "enough" if agent.floor_bytes <= SMALL_HEAP_BYTES else "too little"
            yield Computation(
                f"200 MB an agent: {name} ({agent.runtime})",
                f"floor {format_size(agent.floor_bytes)} against {format_size(SMALL_HEAP_BYTES)}",
                f"{fits}: below its floor it dies during ordinary work",
            )


def explain_batches(plan: Plan) -> Iterator[Computation]:
    waiting = max(plan.agents - BATCH, 0)
    batches = -(-plan.agents // BATCH)
    yield Computation(
        f"batches of {BATCH}, the rest in a queue",
        f"{plan.agents} = {min(BATCH, plan.agents)} running + {waiting} queued: {batches} batches",
        f"{percent(BATCH / max(plan.at_once, 1))} of the {plan.at_once:.0f} that fit; a "
        "batch also waits for its slowest agent",
    )
    quarters = split(plan.agents, [3, 3, 3, 1])
    even = split(plan.agents, [1] * 4)
    yield Computation(
        "15/15/15/5 over four machines",
        f"{plan.agents} agents as 3:3:3:1 = {'/'.join(map(str, quarters))}; evenly "
        f"{'/'.join(map(str, even))}",
        "right only if the fourth has a third of the memory: hosts take agents by their budget",
    )


def explain_subagents(plan: Plan) -> Computation:
    more = CLAUDE_SUBAGENTS * SUBAGENT_BYTES
    return Computation(
        "Claude's cap of 20 subagents",
        f"{CLAUDE_SUBAGENTS} x {format_size(SUBAGENT_BYTES)} = {format_size(more)} in one process"
        f" at first; {plan.agents} sessions: {format_size(more * plan.agents)}",
        "the cap counts subagents, not bytes, and the 21st fails; `ramherd hook install claude` "
        "makes it wait for memory instead",
    )
