"""What is at work is never an orphan, at any depth; and what is no work of a lost server."""

from typing import Any

import pytest

from ramherd.core.policies import StrayPolicy
from ramherd.core.units import MIB
from ramherd.strays.judge.own_servers import find_lost_servers, find_servers_of_agents
from ramherd.strays.judge.reap_plan import choose_named
from ramherd.strays.judge.warnings import find_savings, find_warnings
from ramherd.strays.nouns import (
    Connection,
    Details,
    Kind,
    Origin,
    Recorded,
    RunningProgram,
    Verdict,
)
from ramherd.strays.scan import is_new_orphan
from support.stray_scenes import ALONE, CUT_OFF, NOW, TALKING, Machine, facts, spared

TOOL = ALONE._replace(marks=("claude",), owner_pid=4000, prints_to_agent=True)
LISTENS = ALONE._replace(listens=("5173",))
WRITES = ALONE._replace(writes=("/home/me/train.log",))
CONNECTED = ALONE._replace(connections=(Connection(0, "10.0.0.7:443"),))
BUSY: dict[str, Any] = {"cpu_ticks": 500}


@pytest.fixture
def machine() -> Machine:
    return Machine()


def tool(machine: Machine, details: Details = ALONE, **changes: Any) -> None:
    """claude died above its tool: a shell, npx, and the program itself."""
    machine.add(50, "bash", TOOL)
    machine.add(51, "npm", ALONE, ppid=50)
    machine.add(52, "node", details, ppid=51, **changes)
    for pid in (50, 51, 52):
        machine.seen(pid, cpu_ticks=0)


@pytest.mark.parametrize(
    ("details", "changes", "why"),
    [
        (LISTENS, {}, "listens"),
        (WRITES, {}, "writes"),
        (CONNECTED, {}, "connected"),
        (ALONE, BUSY, "busy"),
        (ALONE, {"reaped_ticks": 500}, "busy"),
        (ALONE._replace(keep=True), {}, "kept"),
        (ALONE._replace(on_display=True), {}, "display"),
    ],
    ids=["listens", "writes", "connected", "busy", "its children were busy", "kept", "windows"],
)
def test_what_is_at_work_is_suspect_and_so_is_the_shell_above(
    machine: Machine, details: Details, changes: dict[str, Any], why: str
) -> None:
    """`python train.py > train.log`, or a dev server below npx, when claude was killed."""
    tool(machine, details, **changes)

    rows = machine.look()

    assert [rows[pid].verdict for pid in (50, 51, 52)] == [Verdict.SUSPECT] * 3
    assert spared(rows[52]) == [why]
    assert (spared(rows[50]), spared(rows[51])) == (["in_tree"], ["in_tree"])
    assert rows[50].spared[0].number == 52
    assert {row.origin for row in rows.values()} == {Origin.LEFT}


def test_a_tool_that_does_nothing_is_an_orphan_with_all_below(machine: Machine) -> None:
    """It was looked at twice, and used no CPU in between."""
    tool(machine)

    rows = machine.look()

    assert [rows[pid].verdict for pid in (50, 51, 52)] == [Verdict.ORPHAN] * 3


def test_a_pipeline_is_spared_as_one(machine: Machine) -> None:
    """`train.py | tee train.log`: only tee has the file, and neither uses the CPU just now."""
    machine.add(50, "bash", TOOL)
    machine.add(51, "python3", ALONE, ppid=50)
    machine.add(52, "tee", WRITES, ppid=50)

    rows = machine.look()

    assert spared(rows[51]) == ["in_tree"]
    assert {row.verdict for row in rows.values()} == {Verdict.SUSPECT}


def test_a_process_younger_than_the_last_look_began_with_nothing(machine: Machine) -> None:
    """The compilers of a build come and go between two looks."""
    tool(machine)
    young = machine.scene().uptime_ticks - 1000
    machine.add(53, "cc1", ALONE, ppid=52)
    machine.processes[53] = machine.processes[53]._replace(
        id=machine.processes[53].id._replace(start_ticks=young), cpu_ticks=300
    )

    rows = machine.look()

    assert spared(rows[53]) == ["busy"]
    assert rows[53].spared[0].number == 30


@pytest.mark.parametrize(("ago_s", "is_new"), [(0.3, True), (1.5, False), (None, True)])
def test_an_orphan_that_was_hardly_looked_at_is_looked_at_again(
    machine: Machine, ago_s: float | None, is_new: bool
) -> None:
    """Within a moment a job at work may have used no CPU: a `ps` just before proves nothing."""
    machine.add(50, "bash", TOOL)
    if ago_s is not None:
        machine.seen(50, at_s=NOW - ago_s)

    assert is_new_orphan(machine.look()[50], machine.scene()) is is_new


def test_what_an_agent_left_without_proof_says_why_it_is_spared(machine: Machine) -> None:
    """`npm run dev > dev.log &` after a normal end: nothing is proved, and it listens below."""
    machine.add(50, "npm", WRITES._replace(marks=("claude",)))
    machine.add(51, "vite", LISTENS, ppid=50)

    rows = machine.look()

    assert [rows[pid].verdict for pid in (50, 51)] == [Verdict.SUSPECT] * 2
    assert (spared(rows[50]), spared(rows[51])) == (["writes"], ["listens"])


@pytest.mark.parametrize(
    "details",
    [
        CUT_OFF._replace(listens=("24282",)),
        CUT_OFF._replace(connections=(Connection(0, "10.0.0.7:443"),)),
        CUT_OFF._replace(writes=("/home/me/.cache/server.log",)),
    ],
    ids=["listens", "connected", "writes"],
)
def test_a_server_without_its_client_is_not_at_work(machine: Machine, details: Details) -> None:
    """Whatever it does: it may spin on the end of its stdin."""
    machine.add(50, "gopls", details, **BUSY)
    machine.seen(50, cpu_ticks=0)

    assert machine.look()[50].verdict is Verdict.ORPHAN


def test_a_server_that_was_started_for_the_network_is_spared_while_it_listens(
    machine: Machine,
) -> None:
    """Its clients come and go, and stdin is nothing to it."""
    machine.add(50, "github-mcp-server", CUT_OFF._replace(listens=("8080",)))
    argv = ("github-mcp-server", "http", "--port", "8080")
    machine.programs[50] = machine.programs[50]._replace(argv=argv)

    assert spared(machine.look()[50]) == ["listens"]


def test_helpers_of_a_lost_server_are_not_at_work_because_they_talk_to_it(
    machine: Machine,
) -> None:
    """A browser and its server; the browser's profile and its sites are no work either."""
    machine.add(50, "gopls", CUT_OFF._replace(sockets=frozenset({5}), clients=(6,)))
    browser = ALONE._replace(
        sockets=frozenset({6}), listens=("9222",), writes=("/tmp/profile/History",),
        connections=(Connection(5, "127.0.0.1:9222"), Connection(0, "10.0.0.7:443")),
    )  # fmt: skip
    machine.add(51, "chrome", browser, ppid=50, **BUSY)
    machine.add(52, "helper", ALONE, ppid=50, **BUSY)
    machine.seen(51, cpu_ticks=0)
    machine.seen(52, cpu_ticks=0)

    assert {row.verdict for row in machine.look().values()} == {Verdict.ORPHAN}


def test_a_job_that_a_lost_server_started_through_a_shell_is_at_work(machine: Machine) -> None:
    """A server that runs commands for its client."""
    machine.add(50, "gopls", CUT_OFF)
    machine.add(51, "bash", ALONE, ppid=50)
    machine.programs[51] = RunningProgram("/bin/bash", ("bash", "-c", "train"), is_shell=True)
    machine.add(52, "train", ALONE, ppid=51, **BUSY)
    machine.seen(52, cpu_ticks=0)

    rows = machine.look()

    assert [rows[pid].verdict for pid in (50, 51, 52)] == [Verdict.SUSPECT] * 3
    assert spared(rows[52]) == ["busy"]


def test_an_agent_without_its_wrapper_is_spared_while_it_works(machine: Machine) -> None:
    """Its own records and its port for an editor are no work."""
    lost = LISTENS._replace(wrapped=("codex",), writes=("/home/me/.codex/state.sqlite",))
    machine.add(50, "codex", lost)
    machine.add(60, "codex", lost._replace(connections=CONNECTED.connections))

    rows = machine.look()

    assert (rows[50].verdict, rows[60].verdict) == (Verdict.ORPHAN, Verdict.SUSPECT)
    assert spared(rows[60]) == ["connected"]


@pytest.mark.parametrize("pattern", ["train*", "*/bin/train.py", "*--epochs*", "/srv/*"])
def test_patterns_of_the_user_are_honoured(machine: Machine, pattern: str) -> None:
    """By name, path, command or directory; also if the user names the process."""
    machine.add(50, "train.py", TOOL)
    argv = ("/usr/bin/train.py", "--epochs", "3")
    machine.programs[50] = RunningProgram("/usr/bin/train.py", argv)
    machine.cwds = {50: "/srv/models"}

    row = machine.look(StrayPolicy(keep=("other", pattern)))[50]

    assert (row.verdict, spared(row)) == (Verdict.SUSPECT, ["kept"])
    assert choose_named([row], [50]).ends == ()
    assert machine.look(StrayPolicy(keep=("other",)))[50].verdict is Verdict.ORPHAN


def test_a_child_of_an_agent_that_speaks_over_two_pipes_is_its_server(machine: Machine) -> None:
    """Also below npx; not a tool, which has no stdin, nor a hook, which is a shell."""
    machine.add(40, "claude", tty=5)
    machine.add(41, "node", TALKING, ppid=40)
    script = "/home/me/weather-tools/index.js"
    machine.programs[41] = RunningProgram(script, ("node", script), is_script=True)
    machine.add(42, "npm", TALKING._replace(stdin_inode=9), ppid=40)
    machine.add(43, "own-server", TALKING._replace(stdin_inode=9), ppid=42)
    machine.add(44, "tail", ALONE, ppid=40)
    machine.add(45, "bash", TALKING, ppid=40)
    machine.programs[45] = machine.programs[45]._replace(is_shell=True)

    def ends(pid: int) -> Any:
        one = machine.details[pid]
        return (one.stdin, one.stdin_inode), (one.stdout, 0)

    found = find_servers_of_agents(machine.tree(), machine.programs, ends)

    assert {pid: (one.name, one.kind) for pid, one in found.items()} == {
        41: ("weather-tools/index.js", Kind.MCP), 43: ("own-server", Kind.MCP),
    }  # fmt: skip


def test_a_lost_server_is_known_by_a_record_or_by_its_script(machine: Machine) -> None:
    """Another program that is cut off is listed, and never ended."""
    for pid in (50, 60, 70):
        machine.add(pid, "python3", CUT_OFF)
        path = f"/home/me/{pid}/server.py"
        machine.programs[pid] = RunningProgram(path, ("python3", path), is_script=True)
    seen = Recorded("codex", machine.processes[50].id, is_server=True)
    recorded = {machine.processes[50].id: seen}

    found = find_lost_servers(
        [50, 60, 70], machine.tree(), machine.programs, recorded, lambda path: "/60/" in path
    )

    assert {pid: one.name for pid, one in found.items()} == {
        50: "50/server.py", 60: "60/server.py",
    }  # fmt: skip
    row = machine.look()[70]
    assert (row.kind, row.verdict, facts(row)[0]) == (Kind.OTHER, Verdict.SUSPECT, "cut_off")


def test_own_servers_are_copies_and_may_be_too_large(machine: Machine) -> None:
    """Two of one script; the same words in another directory are another server."""
    machine.add(40, "claude", tty=5)
    for pid, place in ((41, "a"), (42, "a"), (43, "b")):
        machine.add(pid, "github-mcp-server", TALKING, ppid=40)
        machine.programs[pid] = RunningProgram(f"/{place}/github-mcp-server", ("./it",))
        machine.memory[pid] = 210 * MIB if pid == 43 else 20 * MIB
    rows = list(machine.look().values())

    (saving,) = find_savings(rows, machine.scene())
    signs = find_warnings(rows, machine.scene(), StrayPolicy(), 1.0)

    assert (saving.copies, saving.saved_bytes) == (2, 20 * MIB)
    assert [(sign.sign, sign.pid) for sign in signs] == [("server", 43)]


def test_only_what_an_agent_left_has_outlived_its_session(machine: Machine) -> None:
    """A server that somebody started with nohup has not."""
    machine.add(50, "gopls", ALONE._replace(nohup=True))
    machine.add(60, "bash", TOOL)
    rows = machine.look()

    (sign,) = find_warnings(list(rows.values()), machine.scene(), StrayPolicy(), 1.0)

    assert (sign.sign, sign.number) == ("outlived", 1)
    assert (rows[50].origin, rows[60].origin) == (Origin.HAND, Origin.LEFT)


class Background:
    """`claude --bg`: a supervisor, the host of a terminal, a session on it, and its server."""

    def __init__(self, machine: Machine, idle_s: float) -> None:
        self.machine = machine
        machine.add(40, "claude", ALONE._replace(sockets=frozenset({9})))
        machine.programs[40] = RunningProgram("/usr/bin/claude", ("claude", "daemon", "run"))
        host = ALONE._replace(keeps_terminal=True, listens=("/tmp/cc/pty.sock",), clients=(9,))
        machine.add(41, "claude", host, ppid=40)
        machine.add(42, "claude", ALONE._replace(on_terminal=True), ppid=41, tty=34816)
        machine.add(43, "gopls", TALKING, ppid=42)
        for pid in (40, 41, 42, 43):
            machine.seen(pid, active_s=NOW - idle_s)


def test_an_idle_session_in_the_background_is_of_its_supervisor(machine: Machine) -> None:
    """Suspect, although it has a terminal: the supervisor made it. The user may name it."""
    Background(machine, idle_s=3600.0)

    rows = machine.look()

    assert [rows[pid].verdict for pid in (40, 41, 42)] == [
        Verdict.IDLE, Verdict.SUSPECT, Verdict.SUSPECT,
    ]  # fmt: skip
    assert (facts(rows[40]), facts(rows[42])) == (["supervisor"], ["retained", "idle"])
    assert {row.session for row in rows.values()} == {40}
    ends = choose_named(list(rows.values()), [41]).ends
    assert [row.process.pid for row in ends] == [41, 42, 43]


def test_a_session_in_the_background_that_works_is_live(machine: Machine) -> None:
    """So is an idle one whose tool works, or to which a user is attached."""
    Background(machine, idle_s=60.0)
    assert machine.look()[42].verdict is Verdict.LIVE
    Background(machine, idle_s=3600.0)
    machine.seen(43, active_s=NOW - 5)
    assert machine.look()[42].verdict is Verdict.IDLE
    machine.seen(43, active_s=NOW - 3600)
    machine.details[41] = machine.details[41]._replace(clients=(9, 77))

    row = machine.look()[42]

    assert (row.verdict, facts(row)[0]) == (Verdict.IDLE, "clients")
    assert choose_named([row], [42]).ends == ()


def test_commands_of_ramherd_are_shown_with_their_jobs_and_never_ended(machine: Machine) -> None:
    """Whoever is their parent."""
    machine.add(50, "python3")
    machine.programs[50] = RunningProgram("/usr/bin/python3", ("python3",), module="ramherd")
    machine.add(51, "make", ALONE, ppid=50)

    rows = machine.look()

    assert [rows[pid].verdict for pid in (50, 51)] == [Verdict.LIVE] * 2
    assert {row.origin for row in rows.values()} == {Origin.RAMHERD}
    assert choose_named(list(rows.values()), [50]).ends == ()


def test_a_tmux_that_an_agent_started_holds_sessions_of_its_user(machine: Machine) -> None:
    """What runs in it is not left by the agent."""
    machine.add(50, "tmux", ALONE._replace(marks=("claude",), keeps_terminal=True))
    machine.add(51, "gopls", ALONE, ppid=50, tty=7)

    row = machine.look()[51]

    assert (row.verdict, row.origin) == (Verdict.LIVE, Origin.HAND)
