"""The rows of each panel, from fixed values."""

from typing import Any

import pytest

from ramherd.core.reasons import Reason, Why
from ramherd.core.units import MIB
from ramherd.strays.nouns import Verdict
from ramherd.top.cells import TableData, Tone
from ramherd.top.panels import BY_ID, PANELS
from ramherd.top.panels.needs_you import find_needs
from ramherd.top.panels.run_rows import (
    growth_cell,
    left_cell,
    make_run_table,
    memory_cell,
    render_sparks,
)
from ramherd.top.panels.stray_rows import describe_process
from ramherd.top.reading import Reading, ServiceReading
from support.top_readings import (
    NOW,
    make_empty_reading,
    make_job,
    make_processes,
    make_reading,
    make_waiter,
)

READING = make_reading()


def find_row(table: TableData, wanted: str) -> dict[str, str]:
    """The row that has this text, by the titles of its columns."""
    titles = [column.title for column in table.columns]
    return next(
        dict(zip(titles, (cell.text for cell in row.cells), strict=True))
        for row in table.rows
        if any(cell.text.strip() == wanted for cell in row.cells)
    )


def make(panel: str, reading: Reading = READING, *, is_tree: bool = False) -> TableData:
    return BY_ID[panel].make_table(reading, is_tree=is_tree)


@pytest.mark.parametrize("panel", BY_ID)
@pytest.mark.parametrize("is_tree", [False, True])
def test_every_row_has_every_column(panel: str, is_tree: bool) -> None:
    """And a key of its own, by which the cursor finds it again."""
    table = make(panel, is_tree=is_tree)

    assert table.rows
    assert {len(row.cells) for row in table.rows} == {len(table.columns)}
    assert len({row.key for row in table.rows}) == len(table.rows)
    assert sum(not column.rank for column in table.columns) == 1


@pytest.mark.parametrize("panel", BY_ID)
def test_an_empty_panel_has_a_sentence(panel: str) -> None:
    """Nothing is not an error."""
    table = make(panel, make_empty_reading())

    assert not table.rows
    assert table.empty


def test_names_of_panels_are_unique() -> None:
    """`:` finds one panel by each name."""
    names = [name for panel in PANELS for name in panel.names]

    assert len(set(names)) == len(names)


def test_a_run_has_its_memory_grant_growth_and_tool() -> None:
    """And the time until a leak reaches its limit."""
    row = find_row(make("runs"), "port-to-v2")

    assert row["MEMORY"] == "1.9G"
    assert row["GRANT"] == "1.9G"
    assert row["GROWTH"] == "+23M/min"
    assert row["LIMIT IN"] == "6m28s"
    assert row["DOING"] == "turn 1"
    assert row["COST"] == "$0.91"


def test_a_held_run_says_how_long() -> None:
    """It does not work at present."""
    assert find_row(make("runs"), "flaky-test")["DOING"] == "held 3 s, turn 12 Bash"


@pytest.mark.parametrize(
    ("samples", "sparks"),
    [
        ((), ""),
        ((5,), "▅"),
        ((100, 101, 100), "▅▅▅"),
        ((0, 50, 100), "▁▅█"),
        (tuple(range(60)), "▁▂▃▄▅▆▇█"),
    ],
)
def test_the_last_minute_is_drawn_from_its_lowest_to_its_highest(
    samples: tuple[int, ...], sparks: str
) -> None:
    """Steady memory is a flat line."""
    assert render_sparks(samples) == sparks


def test_the_growth_of_some_seconds_is_noise() -> None:
    """It is shown after twenty."""
    job = make_job(1, "a", leak_bytes_per_s=0.0)

    assert growth_cell(job, (0, 100 * MIB)).text == ""
    assert growth_cell(job, tuple(at * MIB for at in range(21))).text == "+60M/min"
    assert growth_cell(job, tuple(-at * MIB for at in range(21))).text == "-60M/min"


def test_without_a_limit_there_is_no_time_to_it() -> None:
    """Nor without a leak."""
    assert left_cell(make_job(1, "a", used_bytes=5, leak_bytes_per_s=1.0)).text == ""
    assert left_cell(make_job(1, "a", used_bytes=5, limit_bytes=9)).text == ""


@pytest.mark.parametrize(
    ("values", "tone"),
    [
        ({"used_bytes": 50}, Tone.PLAIN),
        ({"used_bytes": 98}, Tone.WARN),
        ({"used_bytes": 98, "limit_bytes": 100}, Tone.BAD),
    ],
)
def test_memory_near_its_grant_or_limit_is_coloured(values: dict[str, Any], tone: Tone) -> None:
    """The limit is worse: there the kernel kills."""
    assert memory_cell(make_job(1, "a", grant_bytes=100, **values)).tone is tone


def test_runs_as_a_tree_are_below_their_herds() -> None:
    """Each herd once."""
    rows = make_run_table(READING, is_tree=True).rows
    herds = [row for row in rows if row.key.startswith("herd:")]

    assert len(herds) == 2
    assert len(rows) == len(READING.live) + 2
    assert {row.depth for row in rows if row not in herds} == {1}


def test_a_queued_job_has_the_reason_why_it_waits() -> None:
    """In the words of `ramherd jobs`."""
    table = make("queue")

    assert find_row(table, "cleanup")["WHY IT WAITS"] == "memory: needs 412 MiB, 90 MiB free"
    assert find_row(table, "later")["WHY IT WAITS"] == "paused by you 5 min ago"
    assert table.more == "and 40 more jobs"


def test_a_paused_service_is_told_below_the_queue() -> None:
    """With the key that resumes it."""
    more = make("queue", make_reading(paused_s=NOW - 60)).more

    assert more.endswith("the service was paused by you 1 min ago: no job starts until U")


def test_an_ended_job_has_its_changes_and_its_answer() -> None:
    """A failed one its error."""
    table = make("ended")

    assert find_row(table, "rename-api")["CHANGES"] == "9 files +214 -180 on ramherd/rename-api"
    assert find_row(table, "rename-api")["RESULT"] == "Renamed 14 functions; all tests pass."
    assert find_row(table, "migrate-db")["RESULT"] == "exit status 2: no such table: users"
    assert find_row(table, "lint")["RESULT"] == "exit 0"


def test_what_needs_you_comes_in_the_order_of_urgency() -> None:
    """A conflict stops other jobs; a limit ends by itself."""
    assert [need.what for need in find_needs(READING)] == [
        "conflict", "failed", "denied", "memory", "stalled", "limit",
    ]  # fmt: skip


def test_a_calm_machine_needs_nothing() -> None:
    """A user sees it at once."""
    assert find_needs(make_empty_reading()) == []


def test_a_lost_service_comes_first() -> None:
    """Nothing starts without it."""
    lost = make_reading(service=ServiceReading(problem="the service has ended"))

    assert find_needs(lost)[0].why == "the service has ended"


def test_an_alert_of_an_earlier_run_is_over() -> None:
    """The job was started again since."""
    live = tuple({**job, "started_s": NOW} for job in READING.live)

    assert {need.what for need in find_needs(make_reading(live=live))}.isdisjoint(
        {"stalled", "memory"}
    )


def test_a_full_disk_needs_you_and_a_pause_does_not() -> None:
    """The user paused the service himself."""
    pauses = (Reason(Why.PAUSED).as_json(), Reason(Why.DISK_FULL).as_json())
    found = [need.what for need in find_needs(make_reading(pauses=pauses))]

    assert found.count("no starts") == 1


def test_an_interrupted_herd_is_told_once() -> None:
    """However many jobs it has."""
    lost = tuple(
        make_waiter(at, "a", Reason(Why.OWNER_LOST, pid=7).as_json(), owner_lost=True)
        for at in (1, 2)
    )
    found = [need for need in find_needs(make_reading(waiting=lost)) if need.what == "lost"]

    assert len(found) == 1
    assert "ramherd run --resume" in found[0].why


def test_a_hooked_session_has_its_subagents_below_it() -> None:
    """Running, waiting with the reason, and ended ones with the memory before and after."""
    table = make("sessions")

    assert find_row(table, "claude 4100")["DETAILS"] == "2 running, 1 waiting"
    assert find_row(table, "Explore") | {"MEMORY": "", "SESSION": ""} == {
        "SESSION": "", "STATE": "running", "MEMORY": "", "LEASED": "", "TIME": "1m15s",
        "BEFORE": "900M", "AFTER": "", "DETAILS": "",
    }  # fmt: skip
    assert find_row(table, "waiting")["DETAILS"].startswith("place 1: expects 300 MiB")
    assert (find_row(table, "Plan")["BEFORE"], find_row(table, "Plan")["AFTER"]) == ("700M", "910M")


def test_a_session_without_the_hook_is_listed_once() -> None:
    """A hooked one is not listed again."""
    keys = [row.key for row in make("sessions").rows]

    assert "process:5200:52000" in keys
    assert "process:4100:41000" not in keys


def test_mcp_servers_are_summed_by_program() -> None:
    """With clients, memory and what was left behind; as a tree with each process."""
    row = find_row(make("servers"), "playwright-mcp")

    assert (row["CLIENTS"], row["MEMORY"]) == ("1", "423M")
    assert row["DETAILS"] == "2 processes, 1 left behind"
    assert len(make("servers", is_tree=True).rows) == 2 + 4


def test_orphans_come_before_suspects() -> None:
    """And the largest first; live processes only in the tree."""
    found = [row.cells[4].text for row in make("strays").rows]

    assert found == ["orphan", "orphan", "suspect"]
    assert len(make("strays", is_tree=True).rows) == len(make_processes())


def test_the_evidence_is_repeated_before_a_process_is_ended() -> None:
    """Every fact, and the command."""
    row = next(row for row in make_processes() if row.verdict is Verdict.ORPHAN)
    lines = describe_process(row)

    assert lines[0] == "playwright-mcp (pid 3300, 233 MiB)"
    assert (
        "evidence  its client is gone: nobody can write to its stdin, nobody reads its stdout"
        in lines
    )
    assert "evidence  inherited by init (pid 1), which did not start it" in lines
    assert lines[-1] == "command   node /opt/playwright-mcp/index.js"


def test_events_are_newest_first_in_the_words_of_the_verb() -> None:
    """As `ramherd events` prints them."""
    rows = make("events").rows

    assert [cell.text for cell in rows[0].cells[1:]] == ["failed", "migrate-db", "exit status 2"]
    assert rows[0].cells[1].tone is Tone.BAD
