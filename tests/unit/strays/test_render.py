"""`ramherd ps` on a screen."""

import pytest

from ramherd.core.units import GIB, MIB
from ramherd.strays.nouns import Fact, RunningProgram, Saving, WarningSign
from ramherd.strays.render import (
    SENTENCES,
    SIGNS,
    align,
    as_tree,
    render_ended,
    render_logged,
    render_plan,
    render_ps,
    render_refused,
    render_signs,
    render_warning,
    row_json,
    shown_command,
)
from support.stray_scenes import ALONE, CUT_OFF, Machine


def make() -> Machine:
    machine = Machine()
    machine.add(40, "claude", tty=5)
    machine.add(41, "bash", ppid=40)
    machine.add(42, "evil\n\x1b[2J", ppid=41)
    machine.add(50, "gopls", CUT_OFF)
    machine.memory = {40: 300 * MIB, 41: 2 * MIB, 42: 1 * MIB, 50: 20 * MIB}
    return machine


def test_every_fact_has_a_sentence() -> None:
    """The list is closed."""
    assert set(SENTENCES) == set(Fact)


def test_rows_stand_with_their_session_and_add_up() -> None:
    """The largest group first; what was left behind is a group of its own."""
    lines = list(render_ps(list(make().look().values()), frozenset({40}), tree=False))

    titles = [line for line in lines if line and not line.startswith(" ")]
    assert titles[0] == "claude 40: 3 processes, 303 MiB"
    assert titles[1] == "left by an agent: 1 process, 20 MiB"
    assert titles[2] == "4 processes, 323 MiB; 3 live, 1 orphan"
    assert any("2 MiB*" in line for line in lines)


def test_what_a_user_started_stands_apart() -> None:
    """A row says what runs, where, on which port, and why a suspect is spared."""
    machine = Machine()
    machine.add(50, "bash", ALONE._replace(marks=("claude",), listens=("5173",)))
    machine.programs[50] = RunningProgram("/x", ("/usr/bin/node", "/srv/shop/bin/vite.js", "dev"))
    machine.add(60, "gopls", ALONE._replace(nohup=True))
    machine.add(70, "ramherd-run")
    machine.programs[70] = RunningProgram("/x", ("python", "-m", "ramherd", "up"), module="ramherd")
    machine.cwds = {50: "/srv/shop/web", 60: "/home"}

    rows = list(machine.look().values())
    lines = list(render_ps(rows, frozenset(), tree=False))

    titles = {line.partition(":")[0] for line in lines if line and line[0].isalpha()}
    assert titles == {
        "left by an agent", "started by hand, or by another program", "ramherd and its jobs",
    }  # fmt: skip
    left = next(line for line in lines if line.lstrip().startswith("50 "))
    assert " bash tool :5173  bin/vite.js dev  /srv/shop/web  spared: it listens on 5173; " in left
    hand = next(line for line in lines if line.lstrip().startswith("60 "))
    assert "spared: it ignores hangups (nohup); " in hand
    assert "live     ramherd  " in next(line for line in lines if line.lstrip().startswith("70 "))
    assert row_json(rows[0], frozenset())["origin"] == "left"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/usr/bin/python3.11 -I -X utf8 -m ramherd up", "ramherd up"),
        ("node --import x.mjs /srv/shop/bin/vite.js dev", "bin/vite.js dev"),
        ("bash -lc make -j4", "bash -lc make -j4"),
        ("/opt/go/bin/gopls serve", "bin/gopls serve"),
        ("python3", "python3"),
        ("", "-"),
    ],
)
def test_a_command_is_shown_without_its_interpreter(command: str, shown: str) -> None:
    """Unless the interpreter is all of it."""
    assert shown_command(command) == shown


def test_a_stored_end_has_its_command() -> None:
    """One without a command is of an older version."""
    numbers = {"software": "gopls", "pid": 5, "memory_bytes": MIB, "evidence": "its client is gone"}
    stored = {"why": "abandoned", "outcome": "killed", **numbers}

    assert render_logged(stored) == "killed: gopls (pid 5, 1 MiB): its client is gone"
    assert render_logged({**stored, "command": "/usr/lib/go/bin/gopls serve"}) == (
        "killed: gopls (pid 5, 1 MiB): its client is gone [bin/gopls serve]"
    )


def test_a_name_moves_no_cursor() -> None:
    """Whatever a process calls itself."""
    text = "".join(render_ps(list(make().look().values()), frozenset(), tree=True))

    assert "\x1b" not in text
    assert "evil??[2J" in text


def test_children_stand_below_their_parents() -> None:
    """One step further in for each."""
    rows = list(make().look().values())

    assert [(row.process.pid, depth) for row, depth in as_tree(rows)][:3] == [
        (40, 0), (41, 1), (42, 2),
    ]  # fmt: skip


def test_nothing_is_said_in_a_line() -> None:
    """Not by an empty table."""
    assert list(render_ps([], frozenset(), tree=False)) == [
        "no agents, MCP servers or their tools are running"
    ]


def test_columns_are_as_wide_as_what_stands_in_them() -> None:
    """All but the last."""
    first, second = align([("1", *["a"] * 9, "long text"), ("100", *["bb"] * 9, "x")])

    assert first.index("long") == second.index("x")


def test_warnings_and_savings_are_sentences() -> None:
    """Each with its numbers."""
    sign = WarningSign("grows", GIB, 2 * GIB, 7, "claude", 5 * MIB, "claude --resume x")
    lines = list(render_signs([sign], [Saving("context7", 3, 90 * MIB)]))

    assert lines == [
        "copies: context7 runs 3 times; one shared copy would save 90 MiB",
        "warning: claude (pid 7) holds 1 GiB, 5 MiB more each minute; end it, then: "
        "claude --resume x",
    ]
    assert all(render_warning(WarningSign(name, 5, 4)) for name in SIGNS)


def test_a_row_as_json_has_its_evidence() -> None:
    """Closed names for programs, sentences for people."""
    row = make().look()[50]

    found = row_json(row, frozenset())

    assert (found["verdict"], found["memory_kind"]) == ("orphan", "anonymous")
    assert found["evidence"][0]["fact"] == "stdin_gone"


def test_a_plan_says_what_comes_back() -> None:
    """And how to do it, or that there is nothing to do."""
    row = make().look()[50]

    assert list(render_plan([row], [], named=False))[-1] == (
        "1 orphan, 20 MiB would come back; to end them: add --yes"
    )
    assert list(render_plan([], [(row, 90.0)], named=False))[-1] == (
        "nothing to end yet; grace not over: 1 orphan"
    )
    assert list(render_ended([(row, "killed")]))[-1] == "1 ended, 20 MiB came back"
    assert list(render_ended([])) == ["nothing to end"]


def test_what_was_named_in_vain_is_told_why() -> None:
    """A live one, and one that nobody knows."""
    live = make().look()[40]

    assert list(render_refused([(40, live), (99, None)])) == [
        "not ended: 40 is live: it has a terminal",
        "not ended: 99 is no agent, server or tool that ramherd knows",
    ]


def test_an_unknown_user_is_a_number() -> None:
    """Their account may be gone."""
    machine = Machine()
    machine.add(50, "gopls", ALONE, uid=4_000_000)

    assert any(
        " 4000000 " in line
        for line in render_ps(list(machine.look().values()), frozenset(), tree=False)
    )
