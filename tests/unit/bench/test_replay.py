"""The parts of the replayed benchmark that are values in, values out."""

from pathlib import Path

import pytest

from bench.replay.bars import Contest, bar_rows, best_of
from bench.replay.herd import Herd, cut, job_tables, make_jobs
from bench.replay.kernel_log import is_kill_inside
from bench.replay.meminfo import Meminfo, render_meminfo
from bench.replay.outcome import Outcome, Work, add_up
from bench.replay.picture import make_columns, render_picture
from bench.replay.sampler import share_of_core
from bench.replay.table import full_rows, render_table, short_rows
from bench.replay.told import Holds, Told, parse_told
from bench.replay.tools import scale_sleeps, shell_lines
from bench.replay.verdict import faults
from ramherd.core.errors import RamherdError
from ramherd.core.units import GIB, MIB
from ramherd.sim.agent_state import TraceProgress
from ramherd.sim.bench import write_section
from ramherd.sim.profiles import MB, Profile, flat
from ramherd.system.procfs import TICKS_PER_S, parse_kib_fields, parse_stat

KILL = (
    "3,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg=/a/replay-1,task_memcg=/a/replay-1/fleet/run,task=python,pid=7,uid=0"
)


def outcome(tool: str = "ramherd", **changes: object) -> Outcome:
    values: dict[str, object] = {
        "tool": tool,
        "work": Work(jobs=2, done=2, attempts=3, begun=2, done_s=100.0, redone_s=5.0),
        "makespan_s": 20.0,
        "oracle_s": 18.0,
        "was_stopped": False,
        "oom_kills": 0,
        "left": 0,
        "rss_bytes": 30 * MB,
        "cpu_s": 1.5,
        "samples": [(0.0, 0), (10.0, 900 * MB)],
        "kill_times_s": [],
        "costs": [],
    }
    return Outcome(**(values | changes))  # type: ignore[arg-type]


def test_meminfo_tells_of_the_arena() -> None:
    """In the kernel's own form, with nothing in caches: those are not used memory here."""
    fields = parse_kib_fields(render_meminfo(2 * GIB, GIB))

    assert (fields["MemTotal"], fields["MemFree"], fields["MemAvailable"]) == (2 * GIB, GIB, GIB)
    assert fields["Cached"] == fields["Buffers"] == 0


def test_meminfo_is_written_over_in_place(tmp_path: Path) -> None:
    """Always at the same length: whoever has it mounted never sees the rest of an older one."""
    meminfo = Meminfo(tmp_path / "meminfo", 64 * GIB)
    before = meminfo.path.stat()
    meminfo.update(64 * GIB - MIB)
    meminfo.close()

    after = meminfo.path.stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)
    assert parse_kib_fields(meminfo.path.read_text())["MemFree"] == MIB


@pytest.mark.parametrize(
    ("cgroup", "inside"),
    [("/a/replay-1", True), ("/a/replay-1/fleet", True), ("/a/replay-11", False), ("/b", False)],
)
def test_a_kill_counts_where_its_victim_was(cgroup: str, inside: bool) -> None:
    """In the cgroup itself or anywhere below it."""
    assert is_kill_inside(KILL, cgroup) == inside
    assert not is_kill_inside("6,3,4,-;usb 1-1: new device", cgroup)


def test_work_done_twice_is_what_is_beyond_the_trace() -> None:
    """A job that never ran to its end has redone only what exceeds its whole length."""
    work = add_up([
        (100.0, TraceProgress(executed_s=110.0, attempts=2, done=1)),
        (100.0, TraceProgress(executed_s=60.0, attempts=3)),
        (100.0, TraceProgress()),
    ])  # fmt: skip

    assert work == Work(jobs=3, done=1, attempts=5, begun=2, done_s=100.0, redone_s=10.0)
    assert work.redone_share == 0.1


def test_what_the_tool_stopped_is_what_the_kernel_did_not_kill() -> None:
    """Attempts beyond the first of each job, less the OOM kills."""
    assert outcome(oom_kills=0).stopped == 1
    assert outcome(oom_kills=1).stopped == 0


def test_the_table_has_a_row_for_each_tool() -> None:
    """One that was stopped has no share of the oracle and no count of what it left."""
    lines = list(render_table(full_rows([outcome(), outcome("slow", was_stopped=True)])))

    assert len(lines) == 4
    assert lines[2] == "| ramherd | 2 of 2 | 0 | 1 | 5.0% | 20 | 0.90 | 900 | 0 | 30.0 | 1.5 |"
    assert lines[3].startswith("| slow | 2 of 2 | 0 | 1 | 5.0% | stopped after 20 |  | 900 |  |")


def test_the_short_table_compares_times_with_the_first() -> None:
    """A reader wants to know how much longer the others take."""
    lines = list(render_table(short_rows([outcome(), outcome("other", makespan_s=35.0, left=4)])))

    assert lines[2] == "| ramherd | 2 of 2 | 0 | 5.0% | 1.00x | 0 |"
    assert lines[3] == "| other | 2 of 2 | 0 | 5.0% | 1.75x | 4 |"


def test_a_column_of_the_picture_is_its_highest_sample() -> None:
    """Gaps go on as before, and columns end with the samples."""
    samples = [(0.0, 5), (0.5, 9), (3.0, 4)]

    assert make_columns(samples, longest_s=10.0, width=10) == [9, 9, 9, 4]


def test_the_picture_marks_kills() -> None:
    """One panel for each tool; a red tick where somebody was killed."""
    killed = outcome("parallel <x>", oom_kills=2, kill_times_s=[5.0, 5.0])

    calm, picture = (render_picture([one], 1000 * MB) for one in (outcome(), killed))

    assert "#e15759" not in calm
    assert picture.count("#e15759") == 1
    assert "parallel &lt;x&gt;: done in 20 s, 2 OOM kills" in picture


def test_a_tools_share_of_a_core_counts_while_all_run() -> None:
    """Neither its own start nor the end of the herd."""
    costs = [(0.0, 3, 0.1), (10.0, 57, 1.0), (20.0, 57, 1.2), (30.0, 57, 1.4), (40.0, 9, 5.0)]

    assert share_of_core(costs, 57) == pytest.approx(0.02)
    assert share_of_core(costs, 58) is None


def test_cpu_time_is_of_the_process_alone() -> None:
    """Not of children it has waited for; a name may hold brackets."""
    stat = "7 (a) b) S 1 1 1 0 -1 4194560 0 0 0 0 150 50 900 900 20 0 1 0 1 1 1"

    assert parse_stat(stat.encode()).cpu_ticks / TICKS_PER_S == pytest.approx(2.0)


def test_the_sleeps_of_parallel_are_scaled() -> None:
    """It looks at the memory once a second at least, so 60 times as often at 60 times the pace."""
    assert scale_sleeps(b"return (($ms < 1000) ? 1 : 2);", 50) == b"return (($ms < 20.0) ? 1 : 2);"
    with pytest.raises(RamherdError, match=r"has no \(\$ms < 1000\) to be scaled"):
        scale_sleeps(b"another program", 60)


def test_a_profile_can_be_cut() -> None:
    """Its last sample marks the end, as in every profile."""
    profile = Profile("a", (0.0, 1.0, 2.1, 3.0), (1, 2, 3, 4))

    assert cut(profile, 2.0) == Profile("a", (0.0, 1.0, 2.0), (1, 2, 2))
    assert cut(profile, 3.0) == profile


def test_each_tool_is_given_the_same_commands(tmp_path: Path) -> None:
    """Every job has a state file of its own; one in ten leaves a process behind."""
    herd = Herd("x", [flat(MB, 10.0), flat(2 * MB, 20.0)], 6, 100 * MB, size=4, speed=60)

    jobs = make_jobs(herd, tmp_path)

    assert [table["command"] for table in job_tables(jobs)] == [job.command for job in jobs]
    assert len(shell_lines(jobs).splitlines()) == len({job.state for job in jobs}) == 12
    assert ["--helper" in job.command for job in jobs] == [n % 10 == 0 for n in range(12)]
    assert (herd.budget_bytes, herd.processes) == (25 * MB, 12 + 2 + 2)


def test_what_ramherd_promises_is_checked() -> None:
    """No OOM kill, no job lost, no process left, and an end."""
    lost = Work(jobs=3, done=2, attempts=3, begun=3, done_s=1.0, redone_s=0.0)

    assert list(faults(outcome())) == []
    assert list(faults(outcome(work=lost, oom_kills=2, left=1, was_stopped=True))) == [
        "not done after 20 s", "2 OOM kills", "jobs lost: 1", "processes left: 1",
    ]  # fmt: skip


def test_a_section_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    """Pages are written by hand around what benchmarks write."""
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter\n")

    write_section(page, "x", ["new", "lines"])

    assert page.read_text() == "before\n<!-- x: begin -->\nnew\nlines\n<!-- x: end -->\nafter\n"
    with pytest.raises(SystemExit, match="has no lines <!-- y: begin -->"):
        write_section(page, "y", [])


def contest(name: str, outcomes: list[Outcome], told: Told | None = None) -> Contest:
    herd = Herd(name, [flat(MB, 1.0)], 50, 100 * MB, size=4, speed=60)
    return Contest(name, herd, "traces", 18.0, outcomes, told or Told())


def test_the_bars_stand_beside_what_was_measured() -> None:
    """The fixed numbers are compared by time, and one that was stopped is said to be longer."""
    others = [outcome("xargs -P 8", makespan_s=36.0, was_stopped=True), outcome("xargs -P 9")]

    rows = bar_rows([contest("whole", [outcome(), *others]), contest("many", [outcome()])])

    assert [row[1] for row in rows] == [
        "measured", "0.90", "0, 0, 0", "1.80x or more", "1.00x", "5.0%",
    ]  # fmt: skip


def test_the_best_fixed_number_has_no_kills() -> None:
    """A faster one that lost agents on the way is not better."""
    killing, calm = outcome("xargs -P 9", oom_kills=1), outcome("xargs -P 8", makespan_s=36.0)

    assert best_of([killing, calm]) is calm
    assert best_of([killing]) is killing


def test_what_fifty_runs_cost_is_told() -> None:
    """CPU while all run, the supervisor alone in memory, and the holds."""
    costs = [(0.0, 57, 1.0), (10.0, 57, 1.1)]
    told = Told(supervisor_rss_bytes=24 * MB, holds=Holds(20, 0.001, 0.0042))

    rows = bar_rows([contest("fifty", [outcome(costs=costs)], told)])

    assert [row[1] for row in rows[1:]] == ["1.0% of a core", "24.0 MB", "4.2 ms"]
    assert rows[3][0] == "held until running again, p95 of 20 (p50 1.0 ms)"


def test_a_ramherd_that_said_nothing_is_told_as_such() -> None:
    """One that was stopped has no summary, and one that held nobody no times."""
    summary = '{"supervisor": {"rss_peak_bytes": 1}, "holds": %s}'

    assert parse_told("") == Told()
    assert parse_told(summary % '{"count": 0}') == Told(supervisor_rss_bytes=1)
    times = '{"count": 2, "p50_s": 0.001, "p95_s": 0.002}'
    assert parse_told(summary % times).holds == Holds(2, 0.001, 0.002)
