"""One sentence for each reason, from the numbers that the decision was made with."""

import ast
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramherd.core.agent_task import MergedBase
from ramherd.core.model import (
    Action,
    Brief,
    JobState,
    Machine,
    PenReading,
    Reason,
    RunEnd,
    Said,
    Suspicion,
    Wait,
    Why,
)
from ramherd.core.reasons import reason_from_json
from ramherd.core.state_disk import DiskState, LogUsage
from ramherd.core.units import GIB, MIB
from ramherd.decide import governor
from ramherd.decide.costs import MoneyLeft, after_spending, explain_fallback
from ramherd.decide.disk_space import (
    explain_ballast,
    explain_full_disk,
    explain_removed_output,
    explain_smaller_logs,
)
from ramherd.decide.engine import refuse_waits, warn_of_containers
from ramherd.decide.exec_admission import find_obstacle
from ramherd.decide.governor.leases import explain_ledger
from ramherd.decide.governor.subagent_slots import Caps, SlotHolder, choose_slot
from ramherd.decide.job_bases import explain_no_base, explain_stuck_herd
from ramherd.decide.job_requests import explain_edit, explain_retry
from ramherd.decide.job_state import after_run, explain_lost_owner, next_dependants
from ramherd.decide.keeper_health import after_failed_keeper, explain_hang, explain_replacement
from ramherd.decide.missing_servers import explain_no_gateway
from ramherd.decide.resumption import explain_continuation
from ramherd.decide.run_end import (
    clear_leftovers,
    cost_reason,
    explain_denials,
    judge,
    kill_overdue,
    stop_interrupted,
    stop_over_budget,
    stop_over_limit,
    stop_timed_out,
)
from ramherd.decide.stalls import OutputSilence, find_stall
from ramherd.decide.start_pace import explain_slot
from ramherd.decide.start_pause import (
    after_failed_start,
    explain_job_pause,
    explain_resumed,
    explain_service_end,
    explain_start_at,
    explain_user_pause,
)
from ramherd.decide.suspects import after_death, choose_trial
from ramherd.decide.usage_limits import UsageWindow, explain_near, explain_served, explain_window
from ramherd.decide.warm import Worn, retired
from ramherd.show.reasons import SENTENCES, render_reason, signal_name
from support.make import MACHINE, exited, job, killed_by, policy, run, snapshot, status, stopping

LIMITED = job("l", memory_limit_bytes=GIB, timeout_s=30.0)
KILLED = PenReading(0, 900 * MIB, 1, kernel_kills=1, limit_hit=True)
FULL = Machine(16 * GIB, 512 * MIB, herds_used_bytes=15 * GIB)


def only(actions: list[Action]) -> Reason:
    (action,) = actions
    return action.reason


def obstacle(need_bytes: int, machine: Machine = MACHINE) -> Reason:
    """Why a session of this size does not start."""
    found = find_obstacle(need_bytes, machine, policy())
    assert found is not None
    return found


def denied(call: str) -> Reason:
    found = explain_denials([call], RunEnd.DONE)
    assert found is not None
    return found


def words(code: int = 0, **said: Any) -> Reason:
    """Why a run ended whose agent said so."""
    return judge(run(exit=exited(code), said=Said(**said)))[1]


# Today, by the clock of this machine.
MORNING_S = time.mktime((*time.localtime()[:3], 8, 45, 0, 0, 0, -1))


def window(name: str = "five_hour") -> UsageWindow:
    return UsageWindow("claude", "a1", "", name, "so it said", MORNING_S)


DEATH = Reason(Why.KEEPER_LOST, beside=0, lived_s=1.0)


def trial_of(*suspicions: Suspicion) -> Reason:
    trial = choose_trial([status(suspicion=found) for found in suspicions], 0.0, policy())
    assert trial is not None
    return trial.reason


MADE: dict[Why, tuple[Reason, str]] = {
    Why.SUBMITTED: (Reason(Why.SUBMITTED), "submitted"),
    Why.NO_ROOM_BUDGET: (
        obstacle(7 * GIB),
        "needs 7 GiB, but only 6 GiB of the 8 GiB budget is free",
    ),
    Why.NO_ROOM_MACHINE: (obstacle(GIB, FULL), "needs 1 GiB, but only 512 MiB of memory is free"),
    Why.TOO_BIG: (obstacle(9 * GIB), "needs 9 GiB, more than the whole budget of 8 GiB"),
    Why.NO_WAIT: (
        next(refuse_waits([Wait("a", Reason(Why.LEVEL, level="tight"))],
                          policy(no_wait=True))).reason,
        "not enough memory is free now, and --no-wait was given",
    ),
    Why.EXITED: (judge(run(exit=exited(3)))[1], "exit status 3"),
    Why.SIGNALLED: (judge(run(exit=killed_by(11)))[1], "terminated by SIGSEGV"),
    Why.TIMEOUT: (
        only(stop_timed_out(snapshot(run("r", LIMITED)))), "exceeded its timeout of 30s",
    ),
    Why.LIMIT_KILL: (
        judge(run(of=LIMITED, exit=killed_by(9), pen=KILLED))[1],
        "killed at its memory_limit of 1 GiB (peak 900 MiB)",
    ),
    Why.OOM_KILL: (
        judge(run(exit=killed_by(9), pen=KILLED))[1],
        "killed by the kernel: out of memory (peak 900 MiB)",
    ),
    Why.HEAP_EXHAUSTED: (
        judge(run(exit=exited(134), pen=KILLED, heap_exhausted=True))[1],
        "ran out of V8 heap (peak 900 MiB); the machine did not run out of memory",
    ),
    Why.NODE_ABORT: (
        judge(run(exit=exited(134), pen=KILLED, is_node=True))[1],
        "terminated by SIGABRT (peak 900 MiB): Node.js aborts when its V8 heap is full",
    ),
    Why.NOT_STARTED: (judge(run(refused=(2, "cannot start x")))[1], "cannot start x"),
    Why.RETRY: (
        after_run(status(job(retries=2)), RunEnd.FAILED, Reason(Why.EXITED, code=1), at_s=0.0,
                  policy=policy()).reason,
        "exit status 1: retry 1 of 2 in 1.0s",
    ),
    Why.OVER_BUDGET: (
        only(stop_over_budget(snapshot(run("a"), run("b"), fleet=2 * GIB), GIB, policy())),
        "runs use 2 GiB, more than the budget of 1 GiB: the youngest run is stopped and queued "
        "again",
    ),
    Why.DISK_FULL: (
        explain_full_disk(DiskState(MIB, ballast_bytes=16 * MIB), "/state"),
        "1 MiB free on the disk of /state: jobs start again at 64 MiB",
    ),
    Why.BALLAST_RELEASED: (
        explain_ballast(DiskState(0, 16 * MIB, 16 * MIB), "/state"),
        "the disk of /state is full: released the 16 MiB reserved for the store",
    ),
    Why.BALLAST_RESTORED: (
        explain_ballast(DiskState(64 * MIB, 16 * MIB), "/state"),
        "the disk of /state has free space again: reserved 16 MiB for the store",
    ),
    Why.LOG_TOTAL: (
        explain_removed_output(3, 12 * MIB, GIB),
        "removed the oldest output, of 3 runs (12 MiB): log_total is 1 GiB",
    ),
    Why.LOGS_SMALLER: (
        explain_smaller_logs(LogUsage(0, GIB), GIB),
        "output uses 1 GiB of log_total 1 GiB: the logs of running jobs are cut",
    ),
    Why.KEEPER_LOST: (judge(run())[1], "the keeper process died"),
    Why.KEEPER_HANGS: (
        explain_hang(),
        "the keeper has not answered for 4.0s: no job starts until it answers; it is replaced "
        "after 1m00s",
    ),
    Why.KEEPER_REPLACED: (
        explain_replacement(),
        "the keeper has not answered for 1m00s: it was replaced, and its runs are resumed",
    ),
    Why.KEEPER_FAILS: (
        after_failed_keeper(None, "MemoryError", 0.0).reason,
        "cannot start the keeper: MemoryError: no job starts until a later attempt succeeds",
    ),
    Why.SUSPECTED: (
        after_death(status(suspicion=Suspicion(2)), DEATH, policy()).reason,
        "the keeper died 3 times while this job ran: it runs again with fewer jobs beside it",
    ),
    Why.SUSPECTS_FIRST: (
        trial_of(Suspicion(4), Suspicion(3)),
        "the keeper died 4 times: to find the cause, 1 of 2 suspected jobs must run first",
    ),
    Why.KEEPER_ALONE: (
        trial_of(Suspicion(4, alone=1)),
        "the keeper died while only a ran: no job starts for 5.0s, to test whether the keeper "
        "survives without it",
    ),
    Why.ENDS_KEEPER: (
        after_death(status(suspicion=Suspicion(5, alone=3)), DEATH, policy()).reason,
        "the keeper died 6 times while this job ran, 4 times with no other job, and never "
        "without it: it is not started again",
    ),
    Why.SUPERVISOR_LOST: (Reason(Why.SUPERVISOR_LOST), "the ramherd process of this job died"),
    Why.DEPENDENCY_DONE: (
        next(next_dependants(status("a", JobState.DONE), [
            status(job("b", after=("a",)), JobState.WAITING)], {"a": JobState.DONE})).reason,
        "a is done",
    ),
    Why.DEPENDENCY_FAILED: (
        next(next_dependants(status("a", JobState.CANCELLED), [
            status(job("b", after=("a",)), JobState.WAITING)], {})).reason,
        "not started: depends on a (cancelled)",
    ),
    Why.INTERRUPTED: (only(stop_interrupted(snapshot(run(), interrupts=1))), "interrupted"),
    Why.GRACE_OVER: (
        only(kill_overdue(snapshot(run(stop=stopping(RunEnd.CANCELLED, 0.0))), policy())),
        "did not exit within 10s of SIGTERM",
    ),
    Why.LEFTOVERS: (
        only(clear_leftovers(snapshot(run(procs=3, exit=exited())))),
        "left 3 processes behind",
    ),
    Why.CONTAINERS: (
        only(warn_of_containers(snapshot(run(engine="/run/docker.sock")))),
        "uses /run/docker.sock: containers that it starts there are outside its pen",
    ),
    Why.UNKILLABLE: (
        Reason(Why.UNKILLABLE, processes=2), "2 processes cannot be killed",
    ),
    Why.CANNOT_PREPARE: (
        after_failed_start(None, "cannot make /s/runs/1: Read-only file system", 0.0).reason,
        "cannot make /s/runs/1: Read-only file system: no job starts until this is resolved",
    ),
    Why.STORE: (
        Reason(Why.STORE, what="cannot use the store /x: database is locked"),
        "cannot use the store /x: database is locked: no job starts until this is resolved",
    ),
    Why.OWNER_LOST: (
        explain_lost_owner(7),
        "the ramherd process of this job (pid 7) is gone (hint: ramherd run --resume)",
    ),
    Why.NO_RUNTIME: (
        Reason(Why.NO_RUNTIME, what="cannot make /run/x: Permission denied"),
        "cannot make /run/x: Permission denied: other ramherd commands cannot find this process"
        " until this is resolved",
    ),
    Why.STORE_RESTORED: (
        Reason(Why.STORE_RESTORED, what="the store /x was deleted: it is written back"),
        "the store /x was deleted: it is written back",
    ),
    Why.RUNTIME_RESTORED: (
        Reason(Why.RUNTIME_RESTORED, path="/run/x"),
        "/run/x was removed or moved: its files were created again",
    ),
    Why.LEDGER: (
        explain_ledger("cannot use the ledger /x: the disk is full", GIB),
        "cannot use the ledger /x: the disk is full: runs keep their lease of 1 GiB until this "
        "is resolved",
    ),
    Why.NO_LEASE: (
        explain_ledger("cannot use the ledger /x: the disk is full", None),
        "cannot use the ledger /x: the disk is full: no job starts until this is resolved",
    ),
    Why.LEDGER_SET_ASIDE: (
        Reason(Why.LEDGER_SET_ASIDE, path="/x", problem="malformed", aside="x.aside", leases=2),
        "the ledger /x was damaged (malformed): it was renamed to x.aside, and a new one was "
        "created with 2 leases of live processes",
    ),
    Why.LEASE_WITHOUT_OWNER: (
        Reason(Why.LEASE_WITHOUT_OWNER, owner="o", kind="run", lease_bytes=GIB),
        "removed a lease of 1 GiB without an owner from the ledger",
    ),
    Why.AT_GRANT: (
        Reason(Why.AT_GRANT, grant_bytes=GIB, free_bytes=MIB),
        "held: uses its whole grant of 1 GiB, 1 MiB free",
    ),
    Why.ABANDONED: (
        Reason(Why.ABANDONED, software="codex", pid=7, memory_bytes=MIB, evidence="gone"),
        "codex (pid 7, 1 MiB): gone",
    ),
    Why.NAMED: (
        Reason(Why.NAMED, software="gopls", pid=7, memory_bytes=MIB),
        "gopls (pid 7, 1 MiB): selected by the user",
    ),
    Why.WARNING_SIGN: (Reason(Why.WARNING_SIGN, what="41 nodes run"), "41 nodes run"),
    Why.SAID_DONE: (words(result=True), "the agent reported success"),
    Why.GAVE_UP: (words(failure="no credit"), "the agent gave up: no credit"),
    Why.NO_RESULT: (words(), "the agent exited without a result"),
    Why.NO_GATEWAY: (
        explain_no_gateway(["time", "memory"]),
        "the MCP gateway does not run: the agent starts without time, memory (hint: ramherd mcp "
        "start)",
    ),
    Why.LARGE_SERVER: (
        Reason(
            Why.LARGE_SERVER, server="time", used_bytes=300 * MIB, warn_bytes=200 * MIB,
            limit_bytes=512 * MIB,
        ),
        "MCP server time uses 300 MiB, more than 200 MiB; its limit is 512 MiB",
    ),
    Why.DENIED: (denied("Bash(make)"), "the agent was denied Bash(make)"),
    Why.API_CALM: (
        Reason(Why.API_CALM, agent="claude"),
        "the API of claude is no longer overloaded: jobs start without delay",
    ),
    Why.OVERLOAD: (
        words(failure="529", overloaded=True), "the API is overloaded: 529",
    ),
    Why.SESSION_LOST: (
        words(code=1, lost_session=True),
        "the session of the agent no longer exists: the job starts over in a new one",
    ),
    Why.COST: (
        cost_reason("it", 1.25, 1.0), "it has cost $1.25, and max_cost_usd is 1.0",
    ),
    Why.COST_LEFT: (
        after_spending(
            replace(status("a"), interrupted=True), MoneyLeft("it", 0.9, 1.0, 0.25)
        ).reason,
        "it has cost $0.9, another reply costs about $0.25, and max_cost_usd is 1.0: stopped",
    ),
    Why.SUBAGENT_CAP: (
        choose_slot(SlotHolder("a", slots=2), [], Caps(GIB, claude=2)).reason,
        "2 subagents are running in this session, and CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS is 2",
    ),
    Why.COST_SHARE: (
        words(code=1, failure="no budget", cost_usd=0.5, share_usd=0.5),
        "the job has spent $0.5, its share of the herd's cost limit: it continues with what "
        "other jobs leave",
    ),
    Why.STEP_DOWN: (
        Reason(Why.STEP_DOWN, model="haiku", usual="opus"),
        "memory is short: the job uses haiku instead of opus",
    ),
    Why.MERGE_CONFLICT: (
        explain_no_base(
            "c", MergedBase(ours="a", theirs="b", path="/trees/a", branch="rb", files=("x", "y"))
        ),
        "a and b conflict in x, y (resolve it: git -C /trees/a merge rb, then git commit, "
        "then ramherd retry c)",
    ),
    Why.CANNOT_MERGE: (
        explain_no_base("c", MergedBase(error="git merge-tree: no space")),
        "cannot merge the branches that the job starts from: git merge-tree: no space (hint: "
        "ramherd retry c)",
    ),
    Why.HERD_STUCK: (
        explain_stuck_herd({"done": 2, "waiting": 1}),
        "waiting for you: 2 done, 0 failed, 0 cancelled, 1 waiting",
    ),
    Why.RESIDUE: (Reason(Why.RESIDUE, residue_bytes=MIB), "left 1 MiB in tmpfs"),
    Why.ADOPTED: (Reason(Why.ADOPTED), "continued to run while the service was down"),
    Why.ASKED: (
        Reason(Why.ASKED, by="ramherd cancel"), "requested by the user (ramherd cancel)"
    ),
    Why.NEAR_BUDGET: (
        Reason(Why.NEAR_BUDGET, used_bytes=GIB, budget_bytes=GIB),
        "runs use 1 GiB of the 1 GiB budget",
    ),
    Why.NEAR_LIMIT: (
        Reason(Why.NEAR_LIMIT, used_bytes=MIB, limit_bytes=GIB),
        "uses 1 MiB of its 1 GiB limit",
    ),
    Why.HERD_OVER: (
        Reason(Why.HERD_OVER, done=3, failed=1, cancelled=0), "3 done, 1 failed, 0 cancelled",
    ),
    Why.ALLOWED: (
        explain_retry(["Bash(npm test)", "edit"]), "the user allowed Bash(npm test), edit",
    ),
    Why.ON_DONE_FAILED: (
        Reason(Why.ON_DONE_FAILED, what="exit status 1: no such branch"),
        "the on_done command failed: exit status 1: no such branch",
    ),
    Why.STALLED: (
        find_stall(
            OutputSilence(0.0), at_s=720.0, uncounted_s=0.0, stall_after_s=600.0, tool="Bash"
        ) or Reason(Why.UNKNOWN),
        "the agent has printed nothing for 12m00s while it runs the tool Bash",
    ),
    Why.CONTINUED: (
        explain_continuation(Reason(Why.INTERRUPTED)),
        "continued by ramherd run --resume (stopped before: interrupted)",
    ),
    Why.PAUSED: (
        explain_user_pause(7.0), "paused by the user: no job starts until `ramherd resume`",
    ),
    Why.JOB_PAUSED: (
        explain_job_pause(time.time()),
        f"paused by the user at {time.strftime('%H:%M')}: `ramherd resume JOB` lets it start",
    ),
    Why.EDITED: (explain_edit(5, 900 * MIB), "changed by the user: priority 5, memory 900 MiB"),
    Why.NO_SERVICE: (
        Reason(Why.NO_SERVICE), "no service is running: `ramherd up` starts one",
    ),
    Why.AFTER: (Reason(Why.AFTER, jobs="delta, eta"), "starts after delta, eta"),
    Why.BEHIND: (Reason(Why.BEHIND, first="delta"), "starts after delta, the first in line"),
    Why.RESUMED: (explain_resumed(), "jobs start again"),
    Why.WARM: (
        Reason(Why.WARM, jobs=2, most_jobs=5), "started in a warm process: job 2 of 5 in it",
    ),
    Why.WARM_GONE: (
        judge(run(refused=(3, "no such process")))[1],
        "its warm process is gone: the job starts in a new one",
    ),
    Why.RETIRED: (
        retired(Worn(5, 5, MIB, 0.0), "job_limit"),
        "warm process retired after 5 jobs at 1 MiB: job limit",
    ),
    Why.SERVICE_STOPS: (
        explain_service_end(),
        "the service is stopping: the job continues when the service starts again",
    ),
    Why.OVERLOAD_PACE: (
        explain_slot("claude", 3.0),
        "the API of claude is overloaded: the next job starts in 3.0s",
    ),
    Why.USAGE_LIMIT: (
        explain_window(window(), 0.0),
        "claude is at its usage limit until 08:45 (five-hour window)",
    ),
    Why.USAGE_PROBE: (
        explain_window(window(), MORNING_S + 9e5),
        "the usage limit of claude has reset (five-hour window): a single job starts first, as "
        "a test",
    ),
    Why.USAGE_SERVED: (explain_served(window()), "the API accepts requests from claude again"),
    Why.NEAR_USAGE_LIMIT: (
        explain_near("claude", "five_hour", 0.914), "claude has used 91 % of its five-hour window",
    ),
    Why.NO_ACCESS: (
        explain_window(window("no_access"), 0.0),
        "the API rejects the account of claude (so it said): log in, or set its API key",
    ),
    Why.LIMIT_FALLBACK: (
        explain_fallback(Brief("claude", "x", "opus"), "sonnet"),
        "opus is at its usage limit: the job uses sonnet instead",
    ),
    Why.START_AT: (explain_start_at(MORNING_S), "starts at 08:45"),
    Why.UNKNOWN: (
        reason_from_json({"why": "moonlight", "hours": 3}),
        "moonlight (a reason from another version of ramherd)",
    ),
}  # fmt: skip


def reasons_in_source(package: Path) -> Iterator[tuple[Why, set[str]]]:
    """(which, with which numbers) of every `Reason(Why.X, a=..., b=...)` written there."""
    for path in package.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Reason":
                which = node.args[0]
                assert isinstance(which, ast.Attribute)
                yield Why[which.attr], {word.arg for word in node.keywords if word.arg}


# Of a retry: the sentence of the run that failed.
WORKED_OUT = ("failure",)


def fields(why: Why) -> set[str]:
    return set(re.findall(r"{(\w+)", SENTENCES[why]))


# What the governor says is made in scenes of its own: there the numbers are read off its source.
GOVERNORS = list(reasons_in_source(Path(governor.__file__).parent))


def test_the_governors_sentences_take_the_numbers_that_it_gives() -> None:
    """Each place that makes a reason gives all that its sentence asks for."""
    for why, numbers in GOVERNORS:
        assert fields(why) <= numbers


def test_no_reason_is_without_a_place_that_makes_it() -> None:
    """A closed list: what is in it is said by somebody."""
    assert set(MADE) | {why for why, _numbers in GOVERNORS} == set(Why)


@pytest.mark.parametrize("why", MADE)
def test_every_reason_has_a_sentence_for_the_numbers_it_is_made_with(why: Why) -> None:
    """Made by the rule that decides it, not by hand, wherever a rule does."""
    reason, sentence = MADE[why]

    assert reason.why is why
    assert render_reason(reason) == sentence


@pytest.mark.parametrize("why", MADE)
def test_a_sentence_shows_all_of_its_numbers(why: Why) -> None:
    """And takes none that the decision does not give."""
    assert fields(why) <= {*MADE[why][0].numbers, *WORKED_OUT}


def test_a_reason_as_json_is_its_why_and_its_numbers() -> None:
    """Closed names and plain numbers, for events and `--json`."""
    reason = Reason(Why.TOO_BIG, need_bytes=2, budget_bytes=1)

    assert reason.as_json() == {"why": "too_big", "need_bytes": 2, "budget_bytes": 1}


def test_the_limit_on_polled_runs_has_the_same_words() -> None:
    """The user reads the same sentence, whether the kernel or ramherd killed the run."""
    over = run("r", LIMITED, used=2 * GIB, kernel_limits=False)

    sentence = render_reason(only(stop_over_limit(snapshot(over))))

    assert sentence == "killed at its memory_limit of 1 GiB (peak 2 GiB)"


@pytest.mark.parametrize(
    ("processes", "sentence"),
    [
        (1, "left 1 process behind"),
        (2, "left 2 processes behind"),
        ("?", "left ? processes behind"),
    ],
)
def test_a_number_takes_its_noun(processes: int | str, sentence: str) -> None:
    """Singular and plural; what another version did not record is plural."""
    assert render_reason(Reason(Why.LEFTOVERS, processes=processes)) == sentence


def test_pressure_is_a_percentage() -> None:
    """Decisions compare fractions; people read percents."""
    assert render_reason(Reason(Why.CPU_PRESSURE, pressure=0.934)) == "CPU pressure is 93 %"


def test_a_request_from_before_commands_were_recorded_is_the_users() -> None:
    """Stores of older versions have such reasons."""
    assert render_reason(Reason(Why.ASKED)) == "requested by the user"


def test_a_run_that_is_killed_at_once_had_no_grace_period() -> None:
    """Nothing waited for it to exit."""
    reason = Reason(Why.GRACE_OVER, grace_s=0.0)

    assert render_reason(reason) == "killed without a grace period"


def test_a_signal_without_a_name_has_its_number() -> None:
    """Real-time signals, and numbers that are none."""
    assert signal_name(9) == "SIGKILL"
    assert signal_name(40) == "signal 40"
    assert signal_name(0) == "signal 0"


def test_braces_in_a_text_are_no_fields() -> None:
    """An error message may hold any character."""
    assert render_reason(Reason(Why.NOT_STARTED, what="cannot {start} {0}")) == "cannot {start} {0}"
