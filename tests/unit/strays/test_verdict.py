"""Verdicts on strays: what is proof, what is a sign, and what keeps a process from being ended."""

import pytest

from ramherd.core.model import ProcId
from ramherd.strays.nouns import Details, Kind, PeerState, Recorded, RunningProgram, Verdict
from support.stray_scenes import ALONE, CUT_OFF, NOW, TALKING, UID, Machine, facts, spared

UNREAD = ALONE._replace(stdout=PeerState.GONE)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_a_server_without_a_client_is_an_orphan(machine: Machine) -> None:
    """Nobody can write to it, nobody reads it, and nobody who started it is there."""
    machine.add(50, "gopls", CUT_OFF)

    row = machine.look()[50]

    assert (row.verdict, facts(row)[0], spared(row)) == (Verdict.ORPHAN, "stdin_gone", [])


@pytest.mark.parametrize(
    "details",
    [
        TALKING,
        ALONE,
        CUT_OFF._replace(stdout=PeerState.NONE),
        CUT_OFF._replace(stdout=PeerState.LIVE),
        CUT_OFF._replace(stdin=PeerState.UNKNOWN),
    ],
    ids=["client", "daemon", "prints to a file", "is read", "socket of another namespace"],
)
def test_init_as_parent_proves_nothing(machine: Machine, details: Details) -> None:
    """Without both ends gone it is only suspect."""
    machine.add(50, "gopls", details)

    assert machine.look()[50].verdict is Verdict.SUSPECT


def test_an_unknown_program_is_no_row(machine: Machine) -> None:
    """A daemon is nobody's stray."""
    machine.add(50, "acme-daemon")

    assert machine.look() == {}


def test_an_agent_reads_its_prompt_from_a_pipe_that_ends(machine: Machine) -> None:
    """`echo fix it | claude -p` is at work, with nobody at its stdin."""
    machine.add(50, "claude", CUT_OFF)

    assert machine.look()[50].verdict is Verdict.LIVE


@pytest.mark.parametrize(
    ("changes", "details", "why", "verdict"),
    [
        ({"tty": 34816}, CUT_OFF, "terminal", Verdict.SUSPECT),
        ({}, CUT_OFF._replace(on_terminal=True), "terminal", Verdict.SUSPECT),
        ({}, CUT_OFF._replace(keeps_terminal=True), "terminal", Verdict.SUSPECT),
        ({}, CUT_OFF._replace(on_display=True), "display", Verdict.SUSPECT),
        ({}, CUT_OFF._replace(clients=(99,), listens=("5173",)), "clients", Verdict.SUSPECT),
        ({"uid": UID + 1}, CUT_OFF, "other_user", Verdict.ORPHAN),
    ],
)
def test_what_is_proved_may_still_not_be_ended(
    machine: Machine, changes: dict[str, int], details: Details, why: str, verdict: Verdict
) -> None:
    """A terminal, a client, another user."""
    machine.add(50, "gopls", details, **changes)

    row = machine.look()[50]

    assert why in spared(row)
    assert row.verdict is verdict


def test_what_cannot_be_looked_at_is_suspect_at_most(machine: Machine) -> None:
    """Nothing is proved of it."""
    machine.add(50, "gopls", Details(readable=False))

    row = machine.look()[50]

    assert (row.verdict, spared(row)) == (Verdict.SUSPECT, ["unreadable"])


def test_neither_we_nor_our_ancestors_are_ended(machine: Machine) -> None:
    """A reap inside an agent's tool sees the agent above itself."""
    machine.add(50, "gopls", CUT_OFF)
    machine.ours = frozenset({50})

    assert spared(machine.look()[50]) == ["ours"]


def test_a_live_parent_is_an_owner(machine: Machine) -> None:
    """It closed the server's stdin, and may know why."""
    machine.add(40, "acme-client")
    machine.add(50, "gopls", CUT_OFF, ppid=40)

    row = machine.look()[50]

    assert row.verdict is Verdict.SUSPECT
    assert facts(row) == ["stdin_closed", "owner"]


def test_a_wrapper_goes_with_its_server(machine: Machine) -> None:
    """npx and its shell gave their own stdin to the server: none of the three is of use."""
    machine.add(40, "npm exec", CUT_OFF)
    machine.add(41, "sh", CUT_OFF, ppid=40)
    machine.add(42, "gopls", CUT_OFF, ppid=41)

    rows = machine.look()

    assert {pid: row.verdict for pid, row in rows.items()} == dict.fromkeys(
        (40, 41, 42), Verdict.ORPHAN
    )
    assert rows[40].kind is Kind.WRAPPER


def test_a_parent_with_another_stdin_is_no_wrapper(machine: Machine) -> None:
    """Whoever made the server's pipe is its client, even without a stdin of its own."""
    machine.add(40, "acme-client", CUT_OFF._replace(stdin_inode=9))
    machine.add(42, "gopls", CUT_OFF, ppid=40)

    rows = machine.look()

    assert (rows[40].kind, rows[40].verdict) == (Kind.OTHER, Verdict.SUSPECT)
    assert rows[42].verdict is Verdict.SUSPECT


def test_what_an_orphan_started_is_one_too(machine: Machine) -> None:
    """A browser whose client is the server above it has no other."""
    machine.add(50, "gopls", CUT_OFF._replace(sockets=frozenset({5})))
    machine.add(51, "chrome", ALONE._replace(listens=("9222",), clients=(5,)), ppid=50)

    rows = machine.look()

    assert [rows[pid].verdict for pid in (50, 51)] == [Verdict.ORPHAN] * 2
    assert facts(rows[51]) == ["child_of_orphan"]


def test_a_client_from_outside_spares_the_server_above_too(machine: Machine) -> None:
    """Ending the server would end the browser that somebody drives."""
    machine.add(50, "gopls", CUT_OFF)
    machine.add(51, "chrome", ALONE._replace(listens=("9222",), clients=(6,)), ppid=50)

    rows = machine.look()

    assert [rows[pid].verdict for pid in (50, 51)] == [Verdict.SUSPECT] * 2
    assert (spared(rows[50]), spared(rows[51])) == (["in_tree"], ["clients"])


def test_to_ignore_hangups_spares_only_what_was_started_by_hand(machine: Machine) -> None:
    """Agents start much with nohup; a server without its client is of no use to anybody."""
    told = UNREAD._replace(marks=("codex",))
    machine.add(50, "bash", told._replace(nohup=True))
    machine.add(51, "server", ALONE._replace(nohup=True), ppid=50)
    machine.add(60, "gopls", CUT_OFF._replace(nohup=True))
    machine.add(70, "codex", ALONE._replace(wrapped=("codex",), nohup=True))
    machine.add(80, "gopls", ALONE._replace(nohup=True))

    rows = machine.look()

    assert [rows[pid].verdict for pid in (50, 51, 60)] == [Verdict.ORPHAN] * 3
    assert [rows[pid].verdict for pid in (70, 80)] == [Verdict.SUSPECT] * 2
    assert (spared(rows[70]), spared(rows[80])) == (["nohup"], ["nohup"])


def test_a_subreaper_that_did_not_start_it_is_no_owner(machine: Machine) -> None:
    """By its name, by its age, by the session, or because another parent was seen."""
    machine.add(40, "systemd")
    machine.add(50, "gopls", CUT_OFF, ppid=40)
    machine.add(60, "herdsman")
    machine.add(70, "gopls", CUT_OFF, ppid=60, sid=65)
    machine.add(71, "gopls", CUT_OFF, ppid=60)
    machine.seen(71, ppid=65)
    machine.add(30, "gopls", CUT_OFF, ppid=60)
    machine.add(72, "gopls", CUT_OFF, ppid=60)

    rows = machine.look()

    assert [rows[pid].verdict for pid in (50, 70, 71, 30)] == [Verdict.ORPHAN] * 4
    assert rows[72].verdict is Verdict.SUSPECT


def test_an_agent_as_process_1_owns_its_children(machine: Machine) -> None:
    """In a container it may be."""
    machine.programs[1] = RunningProgram("/usr/bin/claude", ("claude",))
    machine.add(50, "gopls", CUT_OFF)

    assert "owner" in facts(machine.look()[50])


def test_a_tool_whose_agent_is_gone_is_an_orphan(machine: Machine) -> None:
    """By the pid that the agent gave it; its output goes to the agent's own file."""
    told = ALONE._replace(marks=("claude",), owner_pid=40, prints_to_agent=True)
    machine.add(50, "bash", told)
    machine.add(51, "sleep", ALONE, ppid=50)

    rows = machine.look()

    assert [rows[pid].verdict for pid in (50, 51)] == [Verdict.ORPHAN] * 2
    assert facts(rows[50])[0] == "owner_gone"


@pytest.mark.parametrize("owner", [40, 45], ids=["lives", "lives, though not as its parent"])
def test_a_tool_of_a_living_agent_is_not_ended(machine: Machine, owner: int) -> None:
    """What an agent put into the background has init as its parent too."""
    machine.add(owner, "claude")
    told = ALONE._replace(marks=("claude",), owner_pid=owner, prints_to_agent=True)
    machine.add(50, "bash", told)

    assert machine.look()[50].verdict is Verdict.SUSPECT


def test_a_pid_that_was_given_away_is_not_the_agent(machine: Machine) -> None:
    """Who started after the tool cannot have started it."""
    machine.add(40, "claude", start := ALONE)
    machine.processes[40] = machine.processes[40]._replace(id=ProcId(40, 99))
    machine.add(50, "bash", start._replace(marks=("claude",), owner_pid=40, prints_to_agent=True))

    assert machine.look()[50].verdict is Verdict.ORPHAN


def test_a_tool_that_prints_to_nobody_is_an_orphan(machine: Machine) -> None:
    """codex and gemini read what their tools print: no reader, no agent."""
    machine.add(50, "bash", UNREAD._replace(marks=("codex",)))
    machine.add(51, "bash", UNREAD)

    rows = machine.look()

    assert facts(rows[50])[0] == "reader_gone"
    assert 51 not in rows


@pytest.mark.parametrize(
    "details",
    [
        ALONE._replace(marks=("claude",), owner_pid=40),
        UNREAD._replace(marks=("codex",), listens=("5173",)),
        UNREAD._replace(marks=("codex",), stderr=PeerState.LIVE),
    ],
    ids=["own file", "listens", "stderr is read"],
)
def test_a_tool_that_may_be_wanted_is_suspect(machine: Machine, details: Details) -> None:
    """An agent that starts a server or a long job for its user leaves it on purpose."""
    machine.add(50, "train", details)

    assert machine.look()[50].verdict is Verdict.SUSPECT


def test_recorded_ancestry_names_the_agent(machine: Machine) -> None:
    """The same pid with another start is somebody else."""
    machine.add(40, "claude")
    for pid, start in ((50, 40), (51, 39)):
        machine.add(pid, "node-thing", UNREAD)
        machine.recorded[ProcId(pid, pid)] = Recorded("claude", ProcId(40, start))

    rows = machine.look()

    assert rows[50].verdict is Verdict.SUSPECT
    assert (rows[51].verdict, facts(rows[51])[0]) == (Verdict.ORPHAN, "owner_gone")


def test_an_agent_whose_wrapper_died_is_an_orphan(machine: Machine) -> None:
    """Unless the variable came from an agent of its kind above it."""
    machine.add(50, "codex", ALONE._replace(wrapped=("codex",)))
    machine.add(51, "codex", ALONE._replace(wrapped=("codex",), marks=("codex",)))
    machine.add(52, "codex", ALONE._replace(wrapped=("codex",), nohup=True))

    rows = machine.look()

    assert [rows[pid].verdict for pid in (50, 51, 52)] == [
        Verdict.ORPHAN, Verdict.LIVE, Verdict.SUSPECT,
    ]  # fmt: skip


def test_runs_of_ours_end_with_all_they_started(machine: Machine) -> None:
    """Over, alive, and of a store that is not ours."""
    machine.runs = {"over": True, "alive": False}
    for pid, run in ((50, "over"), (51, "alive"), (52, "foreign")):
        machine.add(pid, "sleep", ALONE._replace(run=run, nohup=True, listens=("5173",)))

    rows = machine.look()

    assert [rows[pid].verdict for pid in (50, 51, 52)] == [
        Verdict.ORPHAN, Verdict.LIVE, Verdict.SUSPECT,
    ]  # fmt: skip


def test_idle_is_what_nobody_saw_at_work(machine: Machine) -> None:
    """Half an hour is idle, four hours make a server suspect, never an agent of a terminal."""
    machine.add(40, "claude", tty=5)
    for pid, idle_s in ((50, 60.0), (51, 3600.0), (52, 5 * 3600.0)):
        machine.add(pid, f"{('gopls', 'clangd', 'jdtls')[pid - 50]}", TALKING, ppid=40)
        machine.seen(pid, active_s=NOW - idle_s)
    machine.seen(40, active_s=NOW - 9 * 3600)

    rows = machine.look()

    assert [rows[pid].verdict for pid in (40, 50, 51, 52)] == [
        Verdict.IDLE, Verdict.LIVE, Verdict.IDLE, Verdict.SUSPECT,
    ]  # fmt: skip


def test_of_twins_with_one_parent_the_older_is_suspect(machine: Machine) -> None:
    """A client that connects again often leaves its first server behind."""
    machine.add(40, "claude")
    for pid in (50, 51):
        machine.add(pid, "github-mcp-server", TALKING, ppid=40)

    rows = machine.look()

    assert (facts(rows[50])[0], rows[51].verdict) == ("duplicate", Verdict.LIVE)


def test_rows_belong_to_the_outermost_agent_and_to_its_application(machine: Machine) -> None:
    """claude in tmux, with a codex that it started."""
    machine.add(30, "tmux")
    machine.add(31, "bash", ppid=30, tty=7)
    machine.add(40, "claude", ppid=31, tty=7)
    machine.add(41, "bash", ppid=40)
    machine.add(42, "codex", ppid=41)

    rows = machine.look()

    assert {row.session for row in rows.values()} == {40}
    assert {row.application for row in rows.values()} == {"tmux"}
    assert set(rows) == {40, 41, 42}
    assert rows[41].kind is Kind.TOOL


def test_an_orphan_is_one_since_it_was_seen_so(machine: Machine) -> None:
    """By its age only if nothing was recorded."""
    for pid in (50, 51, 52):
        machine.add(pid, "gopls", CUT_OFF)
    machine.seen(51)
    machine.seen(52, orphan_s=NOW - 30)

    rows = machine.look()

    assert [rows[pid].orphan_s for pid in (51, 52)] == [NOW, NOW - 30]
    assert rows[50].orphan_s == NOW - rows[50].age_s
