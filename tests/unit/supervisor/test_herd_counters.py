"""What a herd came to."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from ramherd.act.run import LiveRun
from ramherd.agents.run_state import AgentRun
from ramherd.core.agent_task import Brief
from ramherd.core.model import JobState, PenReading, Reason, RunEnd, Why
from ramherd.core.units import MIB
from ramherd.supervisor.herd_counters import (
    ANSWER_LENGTH,
    MOST_HOLDS,
    SILENT,
    HerdCounters,
    JobCounters,
    shorten,
)
from ramherd.supervisor.run_herd import FAILED, INTERRUPTED, NO_ROOM, OK, choose_exit_code
from support.make import HERD, exited, job, status

# The keys of `run --json`; the last three are for the caller to add.
CONTRACT = """herd, jobs, done, failed, cancelled, wall_s, peak_bytes, oom_kills, limit_kills,
preempted, recycled, held_s, redone_s, leftovers_ended, residue_bytes, level_changes, results"""
RESULT = """job, number, state, end, exit_code, runs, peak_bytes, wall_s, held_s, log, reason,
session, turns, tokens_in, tokens_out, cost_usd, cost_is_estimate, result, model, worktree, branch,
files_changed, lines_added, lines_removed, denied, error, resume, left_out,
worktree_note, fallback, merged_into"""
REASON = Reason(Why.EXITED, code=0)


def keys(text: str) -> set[str]:
    return {key.strip() for key in text.split(",")}


def counters_of(*ends: RunEnd, **reading: Any) -> HerdCounters:
    """Of one job `a`, whose runs of three seconds each ended so."""
    counters = HerdCounters({"id-a": JobCounters(Reason(Why.SUBMITTED))})
    for number, end in enumerate(ends, 1):
        run = LiveRun(f"R{number}", job("a"), number, Path("/runs"), 10.0)
        run.record_exit(exited(number))
        run.usage.reading = PenReading(**reading)
        counters.add_run(run, end, REASON, at_s=13.0)
    return counters


def result(counters: HerdCounters, state: JobState = JobState.DONE) -> dict[str, Any]:
    found: dict[str, Any] = counters.as_json(HERD, [status("a", state, reason=REASON)])["results"][
        0
    ]
    return found


def test_the_summary_has_the_keys_of_the_contract() -> None:
    """All of them, and no other."""
    summary = counters_of().as_json(HERD, [status("a")])

    assert set(summary) == keys(CONTRACT)
    assert set(summary["results"][0]) == keys(RESULT)


def test_a_result_is_the_sum_of_its_runs() -> None:
    """Time of all, the highest peak, the last exit status and log."""
    found = result(counters_of(RunEnd.FAILED, RunEnd.PREEMPTED, RunEnd.DONE, peak_bytes=5 * MIB))

    assert (found["runs"], found["wall_s"], found["peak_bytes"]) == (3, 9.0, 5 * MIB)
    assert (found["end"], found["exit_code"], found["log"]) == ("done", 3, "/runs/R3/out")
    assert found["reason"] == {"why": "exited", "code": 0}


def test_the_peak_of_a_herd_is_at_least_that_of_one_run() -> None:
    """A short run reaches and leaves it between two readings of all runs."""
    counters = counters_of(RunEnd.LIMIT_KILL, peak_bytes=64 * MIB)

    counters.peak_bytes = MIB
    assert counters.as_json(HERD, [status("a")])["peak_bytes"] == 64 * MIB
    counters.peak_bytes = 65 * MIB
    assert counters.as_json(HERD, [status("a")])["peak_bytes"] == 65 * MIB


def test_answers_are_kept_short_in_memory() -> None:
    """The store has them whole; without a store, their beginning is shown."""
    answer = "x" * 16_000
    counters = counters_of()
    counters.jobs["id-a"].said = {**SILENT, **shorten({"result": answer, "turns": 3})}

    assert len(counters.jobs["id-a"].said["result"]) == ANSWER_LENGTH
    assert result(counters)["result"] == "x" * (ANSWER_LENGTH - 3) + "..."
    whole = counters.as_json(HERD, [status("a")], {"id-a": answer})["results"][0]
    assert (whole["result"], whole["turns"]) == (answer, 3)


def test_the_error_is_that_of_the_last_run() -> None:
    """A job that was tried again and is done has none."""
    counters = counters_of()
    run = LiveRun("R1", job("a"), 1, Path("/runs"), 10.0)
    counters.add_run(run, RunEnd.FAILED, REASON, 13.0, "no such key")
    failed = result(counters)
    counters.add_run(run, RunEnd.DONE, REASON, 13.0)

    assert (failed["error"], failed["denied"]) == ("no such key", None)
    assert result(counters)["error"] is None


def test_a_job_that_never_ran_has_no_end_and_no_log() -> None:
    """Cancelled by what it waited for."""
    found = result(counters_of(), JobState.CANCELLED)

    assert (found["state"], found["runs"]) == ("cancelled", 0)
    assert found["end"] is found["exit_code"] is found["log"] is None


def test_work_that_is_done_again_is_counted() -> None:
    """Put back, lost, killed by the kernel: not what failed by itself."""
    again = counters_of(RunEnd.PREEMPTED, RunEnd.LOST, RunEnd.OOM_KILL, RunEnd.FAILED, RunEnd.DONE)

    assert (again.redone_s, again.preempted) == (9.0, 1)


def test_what_can_resume_is_not_done_again() -> None:
    """It goes on where it was stopped; a restart of a leaking run is counted on its own."""
    counters = HerdCounters({"id-a": JobCounters(REASON)})
    for end in (RunEnd.PREEMPTED, RunEnd.RECYCLED):
        run = LiveRun("R", job("a", resume_argv=("on",)), 1, Path("/runs"), 10.0)
        counters.add_run(run, end, REASON, at_s=13.0)

    assert (counters.preempted, counters.recycled, counters.redone_s) == (1, 1, 0.0)


def test_a_tool_call_that_was_cut_off_is_done_again() -> None:
    """An agent goes on in its session, before the call that was open; one that failed by itself
    does not go on.
    """
    counters = HerdCounters({"id-a": JobCounters(REASON)})
    for end in (RunEnd.PREEMPTED, RunEnd.LOST, RunEnd.HEAP_EXHAUSTED, RunEnd.FAILED):
        run = LiveRun("R", job("a", brief=Brief("claude", "do it")), 1, Path("/runs"), 10.0)
        run.agent_run = cast("AgentRun", SimpleNamespace(open_tool_s=1.5, as_json=dict))
        counters.jobs.clear()
        counters.add_run(run, end, REASON, at_s=13.0)

    assert counters.redone_s == 4.5


def test_held_time_is_summed_and_its_holds_are_kept_up_to_a_bound() -> None:
    """A run that grows for days is held millions of times."""
    counters = HerdCounters({"id-a": JobCounters(REASON)}, holds=[0.0] * (MOST_HOLDS - 1))
    for _ in range(2):
        run = LiveRun("R", job("a"), 1, Path("/runs"), 10.0)
        run.holds.total_s, run.holds.each_s = 1.5, [1.0, 0.5]
        counters.add_run(run, RunEnd.DONE, REASON, at_s=13.0)

    assert result(counters)["held_s"] == 3.0
    assert (len(counters.holds), counters.holds[-1]) == (MOST_HOLDS, 1.0)


def test_a_kernel_kill_counts_once_as_what_it_was() -> None:
    """At a memory_limit it is a limit kill, else an OOM kill, whoever was hit."""
    at_limit = counters_of(RunEnd.DONE, kernel_kills=2, limit_hit=True)
    elsewhere = counters_of(RunEnd.OOM_KILL, kernel_kills=1)
    polled = counters_of(RunEnd.LIMIT_KILL)

    counts = [(one.limit_kills, one.oom_kills) for one in (at_limit, elsewhere, polled)]
    assert counts == [(2, 0), (0, 1), (1, 0)]


def test_states_are_counted() -> None:
    """Each by its own name."""
    counters = HerdCounters({f"id-{name}": JobCounters(REASON) for name in "abc"})
    states = (JobState.DONE, JobState.FAILED, JobState.FAILED)

    summary = counters.as_json(HERD, [status(n, s) for n, s in zip("abc", states, strict=True)])

    assert [summary[key] for key in ("jobs", "done", "failed", "cancelled")] == [3, 1, 2, 0]


def test_exit_codes() -> None:
    """0 all done, 1 a job failed, 3 this machine cannot, 130 interrupted."""
    done, failed = {"done": 1, "jobs": 1}, {"done": 0, "jobs": 1}
    ran, never = counters_of(RunEnd.FAILED), counters_of()

    assert choose_exit_code(0, ran, done, gave_up=False) == OK == 0
    assert choose_exit_code(0, ran, failed, gave_up=False) == FAILED == 1
    assert choose_exit_code(1, ran, failed, gave_up=False) == INTERRUPTED == 130
    never.no_room = ran.no_room = True
    assert choose_exit_code(0, never, failed, gave_up=False) == NO_ROOM == 3
    assert choose_exit_code(0, ran, failed, gave_up=False) == FAILED


def test_who_was_not_to_wait_is_told_that_there_was_no_room() -> None:
    """Also when others ran; an interrupt comes before it."""
    ran, failed = counters_of(RunEnd.DONE), {"done": 1, "jobs": 2}

    assert choose_exit_code(0, ran, failed, gave_up=True) == NO_ROOM
    assert choose_exit_code(1, ran, failed, gave_up=True) == INTERRUPTED
