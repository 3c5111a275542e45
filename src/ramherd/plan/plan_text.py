"""A plan as text and as JSON. The first line is the answer."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from ramherd.core.units import count, format_duration, format_size
from ramherd.plan.advice import advise
from ramherd.plan.agent_groups import AgentGroup
from ramherd.plan.arithmetic import explain
from ramherd.plan.forecast import SEED
from ramherd.plan.make_plan import Bound, HostPlan, Plan, percent
from ramherd.plan.published_shape import PUBLISHED
from ramherd.plan.run_shapes import growth_at, middle_of
from ramherd.plan.sizes import EACH_MCP_BYTES, ONE_MCP_BYTES, PAGE_BYTES, SUBAGENT_BYTES
from ramherd.sim.synthetic_runs import interpolate

MOST_WAVES = 6
# Slower than unlimited memory by less than this is as fast.
AS_FAST = 1.02
STARTED_S = 5


def render_plan(plan: Plan, width: int, *, is_explained: bool = False) -> list[str]:
    lines = [*wrap(answer(plan), width), ""]
    lines += render_rows(list(summary(plan)), width)
    lines += ["", "what binds first:", *render_rows(list(bounds(plan)), width)]
    if plan.raises:
        lines += ["", "what would raise it:", *render_rows(list(raises(plan)), width)]
    lines += ["", "memory of one step:", *render_rows(operations(plan), width)]
    if is_explained:
        lines += ["", "the arithmetic:"]
        for line in explain(plan):
            lines += [f"  {line.what}", *indented(f"{line.computed}; {line.means}", width, 6)]
    lines += ["", "what to do:"]
    for advice in advise(plan):
        lines += [f"  {advice.command}", *indented(advice.why, width, 6)]
    return lines


def indented(text: str, width: int, by: int) -> list[str]:
    space = " " * by
    return wrap(text, width, initial_indent=space, subsequent_indent=space, break_on_hyphens=False)


def render_rows(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Two columns; the second is wrapped beside the first."""
    column = max((len(name) for name, _text in rows), default=0) + 4
    return [
        line
        for name, text in rows
        for line in wrap(
            text, width, initial_indent=f"  {name}".ljust(column), subsequent_indent=" " * column,
            break_on_hyphens=False, break_long_words=False,
        )
    ]  # fmt: skip


def answer(plan: Plan) -> str:
    risk = f"{percent(plan.alone.risk)} chance of an OOM kill"
    where, number = host_text(plan), plan.at_once
    if plan.question.agents is None:
        return (
            f"{where} {'hold' if len(plan.question.hosts) > 1 else 'holds'}"
            f" {count(int(number), f'{agent_name(plan)} agent')} at once on average, and queues "
            f"the rest. Without ramherd, {int(number)} started together: {risk}."
        )
    return f"{count(plan.agents, f'{agent_name(plan)} agent')} on {where}: {verdict(plan)} {risk}."


def verdict(plan: Plan) -> str:
    failed = sum(one.forecast.failed for one in plan.hosts)
    if failed >= 1:
        word = f"no, about {failed:.0f} of them need more than the whole budget;"
    else:
        word = "yes,"
    if plan.at_once >= plan.agents - 0.5:
        ran = "all at once"
    else:
        ran = f"{plan.at_once:.0f} at once on average"
    slow = plan.slowdown
    ends = "as fast as with unlimited memory" if slow < AS_FAST else (
        f"in {slow:.1f}x the time of unlimited memory" if slow >= 1.05
        else f"in {slow:.2f}x the time of unlimited memory"
    )  # fmt: skip
    return f"{word} {ran}; all {plan.agents} finish {ends}. Without ramherd:"


def agent_name(plan: Plan) -> str:
    names = list(dict.fromkeys(group.agent for group in plan.groups))
    return names[0] if len(names) == 1 else "different"


def host_text(plan: Plan) -> str:
    hosts = plan.question.hosts
    sizes = dict.fromkeys(host.ram_bytes for host in hosts)
    if hosts[0].is_here:
        return f"this machine ({format_size(hosts[0].ram_bytes)})"
    if len(hosts) == 1:
        return format_size(hosts[0].ram_bytes)
    if len(sizes) == 1:
        return f"{len(hosts)} hosts of {format_size(hosts[0].ram_bytes)}"
    return f"{len(hosts)} hosts"


def summary(plan: Plan) -> Iterator[tuple[str, str]]:
    for one in plan.hosts:
        yield "budget", budget_text(one)
    for group in plan.groups:
        yield group.agent, group_text(group)
    low = sum(one.forecast.at_once_range[0] * one.hosts for one in plan.hosts)
    high = sum(one.forecast.at_once_range[1] * one.hosts for one in plan.hosts)
    yield "at once", f"{plan.at_once:.1f} on average, {low:.1f} to {high:.1f} in the draws"
    if plan.question.agents is not None:
        yield "waves", waves_text(plan)
        unlimited = plan.makespan_s / plan.slowdown
        yield (
            "time",
            (
                f"about {format_duration(plan.makespan_s)} in all, "
                f"{format_duration(unlimited)} with unlimited memory"
            ),
        )
    if len(plan.question.hosts) > 1:
        yield "hosts", hosts_text(plan)
    yield (
        "draws",
        (
            f"{count(plan.hosts[0].forecast.draws, 'simulated herd')} in steps of"
            f" {plan.hosts[0].forecast.step_s} s, {plan.alone.draws} without ramherd; random seed"
            f" {SEED}"
        ),
    )


def budget_text(one: HostPlan) -> str:
    host = one.host
    reserve = "used by other programs now" if host.is_here else "reserve for the system"
    text = (
        f"{format_size(host.budget_bytes)} for agents: 80 % of {format_size(host.ram_bytes)} less"
        f" {format_size(host.reserve_bytes)} {reserve}"
    )
    return text + (f", {format_size(one.fixed_bytes)} of it shared" if one.fixed_bytes else "")


def group_text(group: AgentGroup) -> str:
    size = group.size
    text = f"{format_size(size.base_bytes)} each on average"
    if group.more_bytes:
        text += f", {format_size(group.more_bytes)} of it MCP servers"
    return f"{text}; {source_text(group)}"


def source_text(group: AgentGroup) -> str:
    if group.history_runs:
        share = group.history_share
        return (
            f"from {count(group.history_runs, 'run')} here ({percent(share)}) and shipped priors "
            f"({percent(1 - share)})"
        )
    if group.memory_bytes is not None:
        return "size as given, bursts from shipped priors"
    if group.agent in ("claude", "command"):
        return f"from shipped priors ({PUBLISHED.runs} published runs of Claude Code)"
    return "from shipped priors: measured while it waits, bursts of published Claude Code runs"


def waves_text(plan: Plan) -> str:
    waves = plan.waves
    if len(waves) == 1:
        return "one: all start at once"
    shown = ", ".join(map(str, waves[:MOST_WAVES])) + (", ..." if len(waves) > MOST_WAVES else "")
    return f"{len(waves)} ({shown}); an agent starts as soon as another one ends"


def hosts_text(plan: Plan) -> str:
    return "; ".join(
        f"{one.hosts} x {format_size(one.host.ram_bytes)}: {count(one.agents, 'agent')} each, "
        f"{one.forecast.at_once:.0f} at once"
        for one in plan.hosts
    )


def bounds(plan: Plan) -> Iterator[tuple[str, str]]:
    first = plan.first
    for bound in plan.bounds:
        number = "unknown" if bound.at_once is None else f"{bound.at_once:.0f} at once"
        mark = " (first)" if bound is first else ""
        yield bound.what, f"{number}{mark}: {bound.why}"


def raises(plan: Plan) -> Iterator[tuple[str, str]]:
    for one in plan.raises:
        yield one.what, f"{one.at_once:.0f} at once (+{one.gain:.0f}); {one.how}"


def operations(plan: Plan) -> list[tuple[str, str]]:
    size, tops = plan.groups[0].size, PUBLISHED.top
    start = growth_at(PUBLISHED.growth, STARTED_S) * size.base_bytes
    largest, usual = interpolate(tops, 0.95), middle_of(tops)
    return [
        ("start, or a resume", f"{format_size(start)} within 5 s"),
        ("one subagent more", f"{format_size(SUBAGENT_BYTES)} at first, in the same process"),
        (
            "a test run or build",
            f"{format_size(usual)} more at the highest of half of the runs, "
            f"{format_size(largest)} at that of one in twenty",
        ),
        (
            "an MCP server",
            f"{format_size(EACH_MCP_BYTES)} for each agent, or {format_size(ONE_MCP_BYTES)} once",
        ),
        ("a browser page", f"{format_size(PAGE_BYTES)} in 11 processes"),
    ]


def plan_as_json(plan: Plan, *, is_explained: bool = False) -> dict[str, Any]:
    question = plan.question
    found: dict[str, Any] = {
        "answer": answer(plan),
        "agents": question.agents,
        "at_once": round(plan.at_once, 1),
        "slowdown": round(plan.slowdown, 3),
        "makespan_s": round(plan.makespan_s),
        "oom_risk_without": round(plan.alone.risk, 4),
        "peak_bytes_without": [round(size) for size in plan.alone.peak_bytes],
        "waves": list(plan.waves) if question.agents is not None else None,
        "seed": SEED,
        "draws": plan.hosts[0].forecast.draws,
        "draws_without": plan.alone.draws,
        "hosts": [host_json(one) for one in plan.hosts],
        "groups": [group_json(group) for group in plan.groups],
        "binds_first": plan.first.what,
        "bounds": [bound_json(bound) for bound in plan.bounds],
        "raises": [
            {**one._asdict(), "at_once": round(one.at_once, 1), "gain": round(one.gain, 1)}
            for one in plan.raises
        ],
        "operations": dict(operations(plan)),
        "do": [advice._asdict() for advice in advise(plan)],
    }
    if is_explained:
        found["explain"] = [line._asdict() for line in explain(plan)]
    return found


def bound_json(bound: Bound) -> dict[str, Any]:
    at_once = None if bound.at_once is None else round(bound.at_once, 1)
    return {**bound._asdict(), "at_once": at_once}


def host_json(one: HostPlan) -> dict[str, Any]:
    host, found = one.host, one.forecast
    return {
        "hosts": one.hosts, "ram_bytes": host.ram_bytes, "reserve_bytes": host.reserve_bytes,
        "is_here": host.is_here, "budget_bytes": host.budget_bytes, "agents": one.agents,
        "fixed_bytes": one.fixed_bytes, "at_once": round(found.at_once, 1),
        "at_once_range": [round(number, 1) for number in found.at_once_range],
        "recycled": round(found.recycled, 1), "failed": round(found.failed, 1),
        "step_s": found.step_s,
        "memory_bytes": [[round(size) for size in point] for point in found.band],
    }  # fmt: skip


def group_json(group: AgentGroup) -> dict[str, Any]:
    return {
        "agent": group.agent, "number": group.number, "base_bytes": group.size.base_bytes,
        "mcp_bytes": group.more_bytes, "history_runs": group.history_runs,
        "history_share": round(group.history_share, 3), "source": source_text(group),
    }  # fmt: skip
