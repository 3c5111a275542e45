"""What to do: the commands and settings that follow from a plan, each with its reason."""

from collections.abc import Iterator
from typing import NamedTuple

from ramherd.agents import find_agent
from ramherd.core.policies import Policy
from ramherd.core.units import MIB, format_size
from ramherd.plan.make_plan import Plan
from ramherd.show.zram_command import render_zram_command

NODE, BUN = "node", "bun"


class Advice(NamedTuple):
    command: str
    why: str


def advise(plan: Plan) -> Iterator[Advice]:
    yield from advise_run(plan)
    yield from advise_heap(plan)
    yield from advise_memory(plan)
    yield from advise_units(plan)


def advise_run(plan: Plan) -> Iterator[Advice]:
    question = plan.question
    yield Advice(
        f"ramherd run --agent {question.agent} prompts.txt",
        "memory decides how many run at once; a fixed --max-parallel wastes memory",
    )
    if question.leak_bytes_per_s:
        yield Advice(
            'recycle_at = "1.5GiB"   # ramherd.toml, the default',
            "an agent above it is restarted between two turns, in the same session",
        )
    if len(plan.hosts) > 1 or plan.hosts[0].hosts > 1:
        for one in plan.hosts:
            yield Advice(
                f"split -l {one.agents} prompts.txt   # for each host of "
                f"{format_size(one.host.ram_bytes)} ({one.hosts}x)",
                f"{one.agents} agents, {one.forecast.at_once:.0f} of them at once",
            )


def advise_heap(plan: Plan) -> Iterator[Advice]:
    for name in dict.fromkeys(group.agent for group in plan.groups):
        runtime = find_agent(name).runtime
        if runtime == NODE:
            yield Advice(
                f"no NODE_OPTIONS for {name}",
                "ramherd sets --max-old-space-size from the grant, and doubles it when the heap is "
                "full; NODE_OPTIONS would be inherited by every tool",
            )
        elif runtime == BUN:
            yield Advice(
                f"no NODE_OPTIONS for {name}: it is a Bun program",
                "ramherd sets BUN_JSC_forceRAMSize, so that it collects earlier; there is no cap",
            )
    if plan.question.mcp:
        yield Advice(
            "NODE_OPTIONS=--max-old-space-size=256 in the env of a Node MCP server",
            "bounds a server that leaks; its start from the package instead of `npx -y` saves two "
            "processes and 32 MB a copy",
        )


def advise_memory(plan: Plan) -> Iterator[Advice]:
    yield Advice(
        render_zram_command(plan.hosts[0].host.ram_bytes),
        "idle memory of agents moves there before one is stopped (cgroup v2 pens); no "
        "`swapoff -a`, no vm.overcommit_memory=2: each claude maps 73 GB, and forks would fail",
    )
    if plan.question.pages:
        yield Advice(
            "sudo mount -o remount,size=1G /dev/shm   # a container: --shm-size=1g",
            "browser pages share memory there and crash at 64 MiB; a larger one adds no memory",
        )


def advise_units(plan: Plan) -> Iterator[Advice]:
    host = plan.hosts[0].host
    limit = int(host.budget_bytes / Policy().budget_share) // MIB
    yield Advice(
        f"systemd: MemoryMax={limit}M with Delegate=yes; container: --memory {limit}m",
        "80 % of it are the budget: ramherd reads the limit; no MemoryHigh below, which would slow "
        "all agents down",
    )
