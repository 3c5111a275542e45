"""What reap ends, what ps warns of, and whether strays grow faster than they are reaped."""

from ramherd.core.model import ProcId, Reason, Why
from ramherd.core.policies import StrayPolicy
from ramherd.core.sightings import StrayCount
from ramherd.core.units import GIB, MIB
from ramherd.strays.judge.reap_plan import choose_named, choose_orphans, explain_end
from ramherd.strays.judge.trends import find_growth, next_sighting
from ramherd.strays.judge.warnings import find_savings, find_warnings
from ramherd.strays.nouns import Recorded
from support.stray_scenes import ALONE, CUT_OFF, NOW, TALKING, UID, Machine

POLICY = StrayPolicy()


def pids(rows: object) -> list[int]:
    return [row.process.pid for row in rows]  # type: ignore[attr-defined]


def signs(machine: Machine, used_percent: float = 10.0) -> dict[str, object]:
    rows = list(machine.look().values())
    return {sign.sign: sign for sign in find_warnings(rows, machine.scene(), POLICY, used_percent)}


def test_orphans_are_ended_when_their_grace_is_over() -> None:
    """Those of others only if asked, those with an objection never."""
    machine = Machine()
    machine.add(50, "gopls", CUT_OFF)
    machine.add(51, "gopls", CUT_OFF)
    machine.seen(51, orphan_s=NOW - 500)
    machine.add(52, "gopls", CUT_OFF, uid=UID + 1)
    machine.add(53, "gopls", CUT_OFF, tty=3)
    rows = list(machine.look().values())

    plan = choose_orphans(rows, NOW, 600.0)

    assert pids(plan.ends) == [50]
    assert [(row.process.pid, left_s) for row, left_s in plan.later] == [(51, 100.0)]
    assert pids(choose_orphans(rows, NOW, 0.0, all_users=True).ends) == [50, 51, 52]


def test_the_user_may_name_what_is_suspect_with_its_children() -> None:
    """Not what is live, what is unknown, or what is another user's."""
    machine = Machine()
    machine.add(50, "gopls", ALONE)
    machine.add(51, "sleep", ALONE, ppid=50)
    machine.add(52, "tmux-thing", ALONE, ppid=50, tty=9)
    machine.add(60, "claude", TALKING, tty=4)
    machine.add(70, "gopls", ALONE, uid=UID + 1)
    rows = list(machine.look().values())

    plan = choose_named(rows, [50, 60, 70, 80])

    assert pids(plan.ends) == [50, 51]
    assert [pid for pid, _row in plan.refused] == [60, 70, 80]


def test_an_end_says_whether_the_user_named_the_process() -> None:
    """Else it has the evidence by which the process is an orphan."""
    machine = Machine()
    machine.add(50, "gopls", CUT_OFF)
    (row,) = machine.look().values()
    size = row.memory_bytes

    named = explain_end(row, None, outcome="ended")
    proved = explain_end(row, "its parent is gone", outcome="killed")

    assert named == Reason(
        Why.NAMED, software=row.software, pid=50, memory_bytes=size, outcome="ended",
        command="gopls", cwd="",
    )  # fmt: skip
    assert proved == Reason(
        Why.ABANDONED,
        software=row.software,
        pid=50,
        memory_bytes=size,
        outcome="killed",
        command="gopls",
        cwd="",
        evidence="its parent is gone",
    )


def test_a_large_session_is_named_with_its_resume_command() -> None:
    """By the id that its servers were told, if it is one, in the directory of the agent."""
    machine = Machine()
    machine.add(40, "claude", tty=4)
    machine.add(41, "gopls", TALKING._replace(session="abc"), ppid=40)
    machine.add(42, "opencode", tty=5)
    machine.memory = {40: 2 * GIB, 42: GIB}
    machine.cwds = {40: "/home/me/my work"}

    sign = signs(machine)["large"]

    assert (sign.pid, sign.command) == (  # type: ignore[attr-defined]
        40, "cd '/home/me/my work' && claude --resume abc",
    )  # fmt: skip
    machine.details[41] = TALKING._replace(session="$(reboot)")
    machine.cwds = {}
    assert signs(machine)["large"].command == "claude --continue"  # type: ignore[attr-defined]


def test_a_session_that_grows_is_named_with_its_rate() -> None:
    """Long before it is large; without a known id, by what resumes the last one."""
    machine = Machine()
    machine.add(40, "codex", tty=4)
    points = tuple((NOW - 60.0 * (48 - at), 200 * MIB + at * 4 * MIB) for at in range(48))
    machine.seen(40, points=points)

    sign = signs(machine)["grows"]

    assert round(sign.rate / MIB) == 4  # type: ignore[attr-defined]
    assert sign.command == "codex resume --last"  # type: ignore[attr-defined]


def test_too_much_of_something_is_a_warning() -> None:
    """More than 10 MCP servers, 40 node processes, 80 % of memory, more than 3 subagents."""
    machine = Machine()
    machine.add(40, "claude", tty=4)
    for pid in range(100, 111):
        machine.add(pid, "github-mcp-server", TALKING, ppid=40)
    for pid in range(200, 240):
        machine.add(pid, "node", ppid=40)
    for pid in range(300, 304):
        machine.add(pid, "bash", ppid=40)
        machine.add(pid + 10, "codex", ppid=pid)

    found = signs(machine, 80.0)

    assert set(found) == {"mcp", "node", "memory", "subagents"}


def test_subagents_inside_of_an_agent_are_counted_by_the_recorder() -> None:
    """They are no processes; and an agent below its own wrapper is no subagent."""
    machine = Machine()
    machine.add(40, "codex")
    machine.add(41, "codex", ppid=40)
    assert "subagents" not in signs(machine)
    machine.recorded[ProcId(41, 41)] = Recorded("codex", ProcId(40, 40), subagents=4)

    assert signs(machine)["subagents"].number == 4  # type: ignore[attr-defined]


def test_sharing_saves_all_copies_but_one() -> None:
    """Only of servers with the same command line."""
    machine = Machine()
    for pid, ppid in ((40, 1), (50, 1), (60, 1)):
        machine.add(pid, "claude", ppid=ppid)
        machine.add(pid + 1, "github-mcp-server", TALKING, ppid=pid)
    machine.memory = {41: 30 * MIB, 51: 40 * MIB, 61: 35 * MIB}
    machine.programs[61] = machine.programs[61]._replace(argv=("github-mcp-server", "--other"))
    rows = list(machine.look().values())

    (saving,) = find_savings(rows, machine.scene())

    assert (saving.copies, saving.saved_bytes) == (2, 30 * MIB)


def test_a_sighting_keeps_the_first_parent_and_the_last_work() -> None:
    """Timers of an idle server are no work."""
    machine = Machine()
    machine.add(50, "gopls", CUT_OFF, cpu_ticks=1000)
    machine.seen(50, ppid=40, cpu_ticks=999, active_s=NOW - 900)
    idle = next_sighting(machine.look()[50], machine.scene())
    machine.seen(50, ppid=40, cpu_ticks=500, active_s=NOW - 900)
    busy = next_sighting(machine.look()[50], machine.scene())

    assert (idle.ppid, idle.active_s, idle.orphan_s) == (40, NOW - 900, NOW)
    assert busy.active_s == NOW


def counts(sizes: list[int], ended: int = 0) -> list[StrayCount]:
    return [
        count
        for look, size in enumerate(sizes)
        for count in (
            StrayCount(look * 900.0, "leaky", size, size // 2, ended),
            StrayCount(look * 900.0, "calm", 5, 0, 0),
        )
    ]


def test_growth_is_told_with_its_rate_and_software() -> None:
    """Four more in a quarter of an hour, two of them strays, one ended. What the first look ended
    had come before it.
    """
    processes, strays = find_growth(counts([4, 8, 12, 16, 20], ended=1))

    assert (processes.what, round(processes.per_hour), processes.software) == (
        "processes", 16, ("leaky",),
    )  # fmt: skip
    assert (strays.what, round(strays.per_hour)) == ("strays", 8)
    assert round(strays.ended_per_hour) == 4


def test_what_is_reaped_as_fast_as_it_comes_is_no_growth() -> None:
    """Nor are a few more."""
    assert find_growth(counts([10, 14, 10, 14, 10, 14])) == []
    assert find_growth(counts([4, 5, 6, 7, 8])) == []
    assert find_growth([]) == []


def test_two_looks_tell_the_growth_of_strays() -> None:
    """Agents that start in the morning are no trend before the fourth look."""
    (strays,) = find_growth(counts([4, 40]))

    assert (strays.what, round(strays.per_hour)) == ("strays", 72)


def test_looks_within_minutes_are_no_trend() -> None:
    """A session of twenty processes that was killed has not grown."""
    looks = [StrayCount(at_s, "leaky", 0, strays, 0) for at_s, strays in ((0.0, 0), (60.0, 20))]

    assert find_growth(looks) == []


def test_when_nothing_is_left_nothing_grows() -> None:
    """A look that found none is the last point."""
    assert find_growth([*counts([4, 8, 12, 16, 20]), StrayCount(9e9, "", 0, 0, 0)]) == []


def test_a_long_history_is_thinned() -> None:
    """A trend looks at all pairs of looks."""
    (processes, _strays) = find_growth(counts([10 + look for look in range(3000)]))

    assert round(processes.per_hour) == 4
