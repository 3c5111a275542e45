"""The census after a look, and the alerts of `ramherd watch`."""

import pytest

from ramherd.core.census_row import Census, CensusRow, CensusTotal
from ramherd.core.policies import StrayPolicy
from ramherd.core.units import GIB, MIB
from ramherd.strays.judge.census_rows import (
    KEEP_POINTS,
    end_rows,
    find_trend,
    next_census,
    sum_up,
    thin,
)
from ramherd.strays.judge.watch_alerts import OVER_AFTER_S, WatchAlert, next_alerts
from ramherd.strays.nouns import WarningSign
from ramherd.strays.render_census import render_alert, render_census
from support.stray_scenes import ALONE, CUT_OFF, NOW, Machine

POLICY = StrayPolicy(warn_at_bytes=GIB, warn_memory_percent=80)
CALM = CensusTotal(NOW, 1, 0, 0, 0, 0, 0, 40.0)
MINUTE_S = 60.0


def machine(memory_bytes: int = 100 * MIB) -> Machine:
    made = Machine()
    made.add(10, "claude", ALONE._replace(on_terminal=True), ppid=2, tty=5)
    made.cwds[10] = "/src/my shop"
    made.memory[10] = memory_bytes
    return made


def look(
    made: Machine, told: tuple[str, ...] = (), old: CensusRow | None = None,
    total: CensusTotal = CALM, *, run: str = "", ago_s: float = OVER_AFTER_S,
) -> tuple[set[str], list[WatchAlert]]:  # fmt: skip
    """`ago_s`: the last time that there was reason for what was told."""
    rows = list(made.look(POLICY).values())
    known = {} if old is None else {old.process: old}
    census = next_census(rows, made.scene(), {10: run} if run else {}, known)
    hold, alerts = next_alerts(
        census, total, made.scene(), dict.fromkeys(told, total.at_s - ago_s), POLICY
    )
    return set(hold), alerts


def row(made: Machine) -> CensusRow:
    (found,) = next_census(list(made.look(POLICY).values()), made.scene(), {}, {})
    return found


def climb(made: Machine, per_minute: int, minutes: int = 120) -> None:
    points = tuple(
        (NOW - (minutes - at) * MINUTE_S, 100 * MIB + at * per_minute) for at in range(minutes)
    )
    made.seen(10, points=points, first_s=points[0][0])


def test_a_session_above_its_mark_is_told_once() -> None:
    """Again only after it was below the lower mark; with the command that continues it."""
    large = machine(GIB)

    hold, (alert,) = look(large)

    assert hold == {"large 10 10"}
    assert alert.sign.command == "cd '/src/my shop' && claude --continue"
    assert look(large, ("large 10 10",)) == (hold, [])
    assert look(machine(950 * MIB), ("large 10 10",)) == (hold, [])
    assert look(machine(950 * MIB)) == (set(), [])
    assert look(machine(900 * MIB), ("large 10 10",)) == (set(), [])


def test_memory_that_goes_up_and_down_is_one_alert() -> None:
    """It is over when it has stayed below the lower mark for ten minutes."""
    low, told = machine(300 * MIB), {"large 10 10": CALM.at_s - OVER_AFTER_S + 1}
    census = next_census(list(low.look(POLICY).values()), low.scene(), {}, {})

    hold, alerts = next_alerts(census, CALM, low.scene(), told, POLICY)

    assert (hold, alerts) == (told, [])
    later = CALM._replace(at_s=CALM.at_s + 1)
    assert next_alerts(census, later, low.scene(), told, POLICY) == ({}, [])
    assert look(machine(GIB), tuple(told), ago_s=599.0) == (set(told), [])


def test_a_session_of_ramherd_has_alerts_of_its_own() -> None:
    """The supervisor sends them."""
    assert look(machine(2 * GIB), run="01RUN") == (set(), [])


def test_a_leak_is_told_while_it_is_small() -> None:
    """And holds while it pauses: only a session that gave memory back has recovered."""
    leaks = machine(400 * MIB)
    climb(leaks, 2 * MIB)

    hold, (alert,) = look(leaks)

    assert hold == {"grows 10 10"}
    assert alert.sign.rate == pytest.approx(2 * MIB, rel=0.1)
    told = ("grows 10 10",)
    calm, top = machine(380 * MIB), row(leaks)._replace(highest_bytes=400 * MIB)
    assert look(calm, told, top) == ({"grows 10 10"}, [])
    assert look(calm, (), top) == (set(), [])
    assert look(machine(290 * MIB), told, top) == (set(), [])


@pytest.mark.parametrize(("percent", "told", "holds", "new"), [
    (79.9, (), False, 0), (80.0, (), True, 1), (95.0, ("memory",), True, 0),
    (70.0, ("memory",), True, 0), (69.9, ("memory",), False, 0), (75.0, (), False, 0),
])  # fmt: skip
def test_memory_that_is_short(percent: float, told: tuple[str, ...], holds: bool, new: int) -> None:
    """At warn_memory, until ten points below."""
    hold, alerts = look(machine(), told, total=CALM._replace(used_percent=percent))

    assert ("memory" in hold, len(alerts)) == (holds, new)


def test_memory_that_is_short_names_the_largest_session() -> None:
    """Its end frees the most, and the command continues it."""
    _hold, (alert,) = look(machine(), total=CALM._replace(used_percent=91.0))

    assert render_alert(alert.sign) == (
        "91 % of the memory is used, warn_memory is 80; the largest session is claude (pid 10): "
        "end it, then: cd '/src/my shop' && claude --continue"
    )


@pytest.mark.parametrize(("strays", "told", "new"), [
    (9, (), 0), (10, (), 1), (12, ("strays",), 0), (5, ("strays",), 0),
])  # fmt: skip
def test_strays_that_pile_up(strays: int, told: tuple[str, ...], new: int) -> None:
    """At ten, until there are fewer than five."""
    total = CALM._replace(strays=strays, stray_bytes=300 * MIB)

    hold, alerts = look(machine(), told, total=total)

    assert len(alerts) == new
    assert ("strays" in hold) == (new == 1 or bool(told))
    assert look(machine(), ("strays",), total=CALM._replace(strays=4))[0] == set()
    sign = WarningSign("strays", 10, 10, rate=300 * MIB)
    text = "agents left 10 processes behind, which hold 300 MiB: ramherd reap"
    assert render_alert(sign) == text


def test_the_highest_is_kept() -> None:
    """With its time, also when memory was given back."""
    first = row(machine(300 * MIB))
    made = machine(200 * MIB)
    (later,) = next_census(
        list(made.look(POLICY).values()), made.scene(), {},
        {first.process: first._replace(highest_s=NOW - 50)},
    )  # fmt: skip

    assert (later.memory_bytes, later.highest_bytes, later.highest_s) == (
        200 * MIB, 300 * MIB, NOW - 50,
    )  # fmt: skip
    assert later.started_s == NOW - (1_000_000 - 10) / 100


def test_a_process_that_is_about_to_end_is_as_it_was() -> None:
    """The kernel has taken its memory and its directory already."""
    before = row(machine(300 * MIB))._replace(seen_s=NOW - 60)
    made = machine(0)
    made.cwds.clear()
    (later,) = next_census(
        list(made.look(POLICY).values()), made.scene(), {}, {before.process: before}
    )

    assert later == before._replace(seen_s=NOW)


def test_a_process_that_is_gone_keeps_its_history() -> None:
    """Thinned, the last point included."""
    made = machine()
    climb(made, MIB, 150)
    before = row(made)
    seen = dict(made.sightings)
    made.processes.pop(10)
    made.programs.pop(10)
    made.sightings = seen

    (ended,) = end_rows([], made.scene(), {before.process: before})

    assert ended.ended_s == NOW
    assert len(ended.points) <= KEEP_POINTS
    assert ended.points[-1] == seen[before.process].points[-1]
    assert thin(()) == ()


@pytest.mark.parametrize(("per_minute", "trend"), [
    (2 * MIB, 120 * MIB), (0, None), (-MIB // 2, -30 * MIB), (1000, None),
])  # fmt: skip
def test_a_trend_up_or_down(per_minute: int, trend: int | None) -> None:
    """Bytes per hour; less than 8 MiB is none, and so is a history of few points."""
    points = [(at * MINUTE_S, 200 * MIB + at * per_minute) for at in range(60)]

    found = find_trend(points)

    assert found == (None if trend is None else pytest.approx(trend, rel=0.1))
    assert find_trend(points[:7]) is None


def test_totals_count_what_was_left() -> None:
    """An orphan is a stray; agents and servers are counted by kind."""
    made = machine()
    made.add(20, "gopls", CUT_OFF)
    made.memory[20] = 50 * MIB
    total = sum_up(list(made.look(POLICY).values()), NOW, 33.0)

    assert (total.agents, total.servers, total.tools, total.strays) == (1, 0, 1, 1)
    assert (total.memory_bytes, total.stray_bytes) == (150 * MIB, 50 * MIB)


def test_the_census_as_text() -> None:
    """Live ones with now, highest, trend and since; of those that ended, agents."""
    live = row(machine(GIB))._replace(trend_bytes=100.0 * MIB, started_s=NOW - 7200)
    agent = live._replace(ended_s=NOW - 600, memory_bytes=MIB, trend_bytes=None, verdict="idle")
    tool = agent._replace(kind="tool", software="make", cwd="", session=10)
    totals = [CALM._replace(at_s=NOW - 7200, memory_bytes=3 * GIB), CALM]

    lines = list(render_census(Census([live, agent, tool], totals), NOW, ended=False))

    assert lines == [
        "PID  MEMORY  HIGHEST       TREND  SINCE  WHO",
        " 10   1 GiB    1 GiB  +100 MiB/h  2h00m  claude agent in /src/my shop",
        "1 process, 1 GiB; the most in 2h00m: 3 GiB",
        "",
        "ended in the last 7 days, the newest first:",
        "PID  MEMORY  HIGHEST  TREND       SINCE  WHO",
        " 10   1 MiB    1 GiB      -  10m00s ago  claude agent in /src/my shop",
        "1 ended process not listed (--all lists them)",
    ]
    assert "make tool" in "\n".join(
        render_census(Census([live, agent, tool], totals), NOW, ended=True)
    )
