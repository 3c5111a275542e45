"""The answer of a plan: how many, how fast, what binds, what helps, and how it is written."""

import re
from html.parser import HTMLParser

import pytest

from ramherd.core.units import GIB, MIB
from ramherd.decide.governor.classes import ClassRecord, RunSummary, prior_of
from ramherd.plan.advice import advise
from ramherd.plan.agent_groups import AgentGroup, group_of
from ramherd.plan.arithmetic import explain
from ramherd.plan.make_plan import Bound, Plan, make_plan, percent, split
from ramherd.plan.memory_chart import render_chart
from ramherd.plan.page import render_page
from ramherd.plan.plan_text import plan_as_json, render_plan
from ramherd.plan.request import Question, make_host, parse_hosts

HOST = make_host(16 * GIB, None, 8)


@pytest.fixture(scope="module")
def tight() -> Plan:
    """Fifty agents with five MCP servers each."""
    question = Question("claude", 50, (HOST,), mcp=5)
    return make_plan(question, [group_of("claude", 50)])


def test_the_first_line_is_the_answer(tight: Plan) -> None:
    """Number, machine, yes, at once, time and the risk without ramherd."""
    text = render_plan(tight, 300)[0]

    assert re.match(
        r"50 claude agents on 16 GiB: yes, 2\d at once on average; all 50 finish in 1\.\d+x the "
        r"time of unlimited memory\. Without ramherd: above 99 % chance of an OOM kill\.", text,
    )  # fmt: skip


def test_sharing_servers_and_more_memory_raise_the_number(tight: Plan) -> None:
    """Each with its gain, which is what the number would be less what it is."""
    found = {one.what: one for one in tight.raises}

    assert found["one copy of each MCP server for all agents"].gain > 15
    assert found["twice the RAM"].at_once == 50
    assert all(one.gain == one.at_once - tight.at_once for one in tight.raises)


def test_memory_binds_first_on_a_machine_with_many_cores(tight: Plan) -> None:
    """80 agents are as many as 8 cores hold."""
    assert tight.first.what == "memory"
    assert [bound.at_once for bound in tight.bounds if bound.what == "CPU"] == [80]


def test_two_cores_bind_before_memory() -> None:
    """A tenth of a core for each agent."""
    host = make_host(64 * GIB, None, 2)
    plan = make_plan(Question("claude", 40, (host,)), [group_of("claude", 40)])

    assert plan.first == Bound("CPU", 20, "2 cores, 0.1 of a core an agent on average")


def test_a_few_agents_run_all_at_once() -> None:
    """Nothing would raise the number, and nothing is proposed."""
    plan = make_plan(Question("claude", 5, (HOST,)), [group_of("claude", 5)])

    assert plan.at_once == 5
    assert plan.raises == ()
    assert plan.waves == (5,)
    assert plan.alone.risk == 0


def test_without_a_number_the_plan_says_how_many_fit() -> None:
    """The herd is large enough that some always wait."""
    plan = make_plan(Question("claude", None, (HOST,)), [group_of("claude", 1)])

    assert 40 <= plan.at_once <= 54
    assert plan.agents > 2 * plan.at_once
    assert render_plan(plan, 200)[0].startswith("16 GiB holds 4")


def test_hosts_take_agents_by_their_budget() -> None:
    """And all agents are taken."""
    hosts = parse_hosts("2x16GiB,64GiB", None, None)
    plan = make_plan(Question("claude", 100, hosts), [group_of("claude", 100)])

    assert sum(one.agents * one.hosts for one in plan.hosts) == 100
    assert [(one.hosts, one.agents) for one in plan.hosts] == [(1, 17), (1, 16), (1, 67)]


def test_whole_agents_are_split_without_rest() -> None:
    """15/15/15/5 of fifty."""
    assert split(50, [3, 3, 3, 1]) == [15, 15, 15, 5]
    assert split(50, [1, 1, 1, 1]) == [13, 13, 12, 12]


def test_a_leak_is_recycled_in_the_plan_and_kills_without() -> None:
    """2 GiB an hour for each of 40 agents."""
    question = Question("claude", 40, (HOST,), leak_bytes_per_s=8 * GIB / 3600)
    plan = make_plan(question, [group_of("claude", 40)])

    assert plan.hosts[0].forecast.recycled > 0
    assert plan.alone.risk > 0.9


def test_history_is_used_and_named() -> None:
    """In the proportion in which the governor mixes it with the prior."""
    recent = (RunSummary(800 * MIB, 50 * MIB, 900 * MIB, 200.0),) * 15
    group = AgentGroup("claude", 50, ClassRecord(recent, 15, 15, prior_of("claude")))
    plan = make_plan(Question("claude", 50, (HOST,)), [group])

    assert plan.at_once < 20
    assert "from 15 runs here (75 %) and shipped priors (25 %)" in "\n".join(render_plan(plan, 200))


def test_the_same_question_has_the_same_answer(tight: Plan) -> None:
    """Seeds are fixed, and no clock decides how much is simulated."""
    again = make_plan(tight.question, [group_of("claude", 50)])

    assert plan_as_json(again) == plan_as_json(tight)


def test_large_herds_are_simulated_in_part() -> None:
    """Ten times the agents in ten times the memory: ten times as many at once."""
    small = make_plan(
        Question("claude", 100, (make_host(16 * GIB, 2 * GIB, None),)), [group_of("claude", 100)]
    )
    large = make_plan(
        Question("claude", 1000, (make_host(160 * GIB, 20 * GIB, None),)),
        [group_of("claude", 1000)],
    )

    assert abs(large.at_once / small.at_once / 10 - 1) < 0.1


def test_a_risk_of_few_draws_is_never_certain() -> None:
    """300 draws cannot tell 99.9 % from 100 %."""
    assert [percent(share) for share in (0, 0.5, 1)] == ["below 1 %", "50 %", "above 99 %"]


def test_every_line_of_the_arithmetic_is_computed(tight: Plan) -> None:
    """With its inputs."""
    lines = list(explain(tight))

    assert lines[0].computed == "(16 GiB - 2 GiB) / 50 = 287 MiB each"
    assert {"8 GiB heap for 4-8 agents", "15/15/15/5 over four machines"} <= {
        line.what for line in lines
    }
    assert all(re.search(r"\d", line.computed) for line in lines)


def test_no_advice_is_harmful(tight: Plan) -> None:
    """What circulates and breaks machines is named only to warn of it."""
    commands = "\n".join(advice.command for advice in advise(tight))

    assert "zramctl" in commands
    assert not re.search(r"swapoff|overcommit|kill -9|oom_kill_allocating", commands)


def test_text_fits_in_80_columns(tight: Plan) -> None:
    """Except commands, which are copied."""
    lines = render_plan(tight, 79, is_explained=True)

    assert [line for line in lines if len(line) > 80 and "zramctl" not in line] == []


def test_a_chart_has_the_budget_and_the_width(tight: Plan) -> None:
    """Without colours where none are wanted."""
    chart = render_chart(tight, 79, is_colored=False)

    assert "budget 10.8 GiB" in chart
    assert max(map(len, chart.splitlines())) <= 79
    assert "\x1b" not in chart


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]


def test_a_page_asks_nobody_for_anything(tight: Plan) -> None:
    """One file to share: no script, no address, light and dark."""
    page = render_page(tight)
    links = Links()
    links.feed(page)

    assert links.found == []
    assert "script" not in links.tags
    assert {"svg", "table", "h1"} <= links.tags
    assert "http" not in page
    assert "prefers-color-scheme: dark" in page
