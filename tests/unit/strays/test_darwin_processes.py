"""macOS: strays from what ps and lsof print; output written after their manuals, not from a Mac."""

from pathlib import Path

from ramherd.core.policies import StrayPolicy
from ramherd.core.units import KIB
from ramherd.strays.judge.process_tree import ProcessTree, choose_rows, choose_wrappers
from ramherd.strays.judge.software import SoftwareTable
from ramherd.strays.judge.verdict import judge
from ramherd.strays.nouns import Kind, PeerState, ProcessScene, Verdict
from ramherd.strays.read.darwin_processes import (
    parse_open_files,
    parse_programs,
    parse_table,
)
from unit.strays.test_software import write_package

PS = """\
  PID  PPID  PGID TTY        UID    RSS      TIME STARTED                      STAT COMM
    1     0     1 ??           0  20000   1:02.50 Sun Mar  1 09:00:00 2026 Ss   /sbin/launchd
  500     1   500 ??         501  81000   0:03.21 Sun Mar  1 10:00:00 2026 S    /usr/bin/node
  501   500   500 ??         501   1000   0:00.01 Sun Mar  1 10:00:01 2026 S    /bin/sleep
  600     1   600 ttys003    501 400000  12:03:21.00 Sun Mar  1 11:00:00 2026 S+   /my apps/claude
  601   600   600 ttys003    501  81000   0:03.21 Sun Mar  1 11:00:01 2026 S+   /usr/bin/node
  700     1   700 ??         501      0   0:00.00 Sun Mar  1 11:00:01 2026 Z    (gone)
"""
LSOF = """\
p500
f0
tPIPE
n
f1
tunix
n0xabc
f2
tCHR
n/dev/null
p501
f0
tCHR
n/dev/null
p601
f0
tPIPE
n->0x58a1
f1
tPIPE
n->0x58a2
f7
tIPv4
n127.0.0.1:3000
TST=LISTEN
TQR=0
f8
tIPv4
n127.0.0.1:3000->127.0.0.1:50000
TST=ESTABLISHED
f9
tCHR
n/dev/ptmx
"""


def commands(script: str) -> str:
    return f"""\
  PID ARGS
    1 /sbin/launchd
  500 node {script} stdio
  501 sleep 1000
  600 /my apps/claude -p x
  601 node {script}
"""


def test_the_table_of_processes() -> None:
    """A path may hold spaces, hours stand before minutes, zombies are left out."""
    table = parse_table(PS)

    assert sorted(table) == [1, 500, 501, 600, 601]
    claude = table[600]
    assert (claude.name, claude.ppid, claude.uid) == ("claude", 1, 501)
    assert (claude.tty, table[500].tty) == (1, 0)
    assert claude.cpu_ticks == 100 * (12 * 3600 + 3 * 60 + 21)
    assert claude.resident_bytes == 400000 * KIB
    assert table[601].id.start_ticks - claude.id.start_ticks == 1


def test_open_files_say_who_is_at_the_other_end() -> None:
    """lsof shows no other end where there is none."""
    found = parse_open_files(LSOF)

    assert (found[500].stdin, found[500].stdout, found[500].stderr) == (
        PeerState.GONE, PeerState.GONE, PeerState.NONE,
    )  # fmt: skip
    assert (found[601].stdin, found[601].listens, found[601].clients) == (
        PeerState.LIVE,
        ("3000",),
        (0,),
    )
    assert found[601].keeps_terminal
    assert parse_open_files("") == {}


def test_verdicts_are_the_same_as_elsewhere(tmp_path: Path) -> None:
    """A server whose client is gone, with its child; and one of a session on a terminal."""
    script = write_package(tmp_path / "p", name="acme-mcp", mcpName="io.acme")
    processes, programs = parse_table(PS), parse_programs(PS, commands(script))
    known = SoftwareTable()
    software = {
        pid: found for pid, one in programs.items() if (found := known.recognise(one)) is not None
    }
    scene = ProcessScene(
        at_s=0.0, uptime_ticks=0, ticks_per_s=1, uid=501, ours=frozenset(), processes=processes,
        software=software, programs=programs, details=parse_open_files(LSOF),
    )  # fmt: skip
    tree = ProcessTree(processes, software, {})
    rows = choose_rows(tree, set())

    judged = judge(scene, tree, rows | choose_wrappers(tree, rows), StrayPolicy())

    assert {row.process.pid: (row.kind, row.verdict) for row in judged} == {
        500: (Kind.MCP, Verdict.ORPHAN),
        501: (Kind.TOOL, Verdict.ORPHAN),
        600: (Kind.AGENT, Verdict.LIVE),
        601: (Kind.MCP, Verdict.LIVE),
    }
