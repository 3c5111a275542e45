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
from ramherd.decide.job_requests import explain_retry
from ramherd.decide.job_state import after_run, explain_lost_owner, next_dependants
from ramherd.decide.keeper_health import after_failed_keeper, explain_hang, explain_replacement
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
    Why.NO_ROOM_BUDGET: (obstacle(7 * GIB), "needs 7 GiB, the budget of 8 GiB has 6 GiB left"),
    Why.NO_ROOM_MACHINE: (obstacle(GIB, FULL), "needs 1 GiB, the machine has 512 MiB left"),
    Why.TOO_BIG: (obstacle(9 * GIB), "needs 9 GiB, more than the whole budget of 8 GiB"),
    Why.NO_WAIT: (
        next(refuse_waits([Wait("a", Reason(Why.LEVEL, level="tight"))],
                          policy(no_wait=True))).reason,
        "there is no memory for it now, and --no-wait was given",
    ),
    Why.EXITED: (judge(run(exit=exited(3)))[1], "exit status 3"),
    Why.SIGNALLED: (judge(run(exit=killed_by(11)))[1], "ended by SIGSEGV"),
    Why.TIMEOUT: (
        only(stop_timed_out(snapshot(run("r", LIMITED)))), "ran into its timeout of 30s",
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
        "V8 ran out of heap (peak 900 MiB), not the machine out of memory",
    ),
    Why.NODE_ABORT: (
        judge(run(exit=exited(134), pen=KILLED, is_node=True))[1],
        "ended by SIGABRT: node aborts when its V8 heap is full (peak 900 MiB)",
    ),
    Why.NOT_STARTED: (judge(run(refused=(2, "cannot start x")))[1], "cannot start x"),
    Why.RETRY: (
        after_run(status(job(retries=2)), RunEnd.FAILED, Reason(Why.EXITED, code=1), at_s=0.0,
                  policy=policy()).reason,
        "exited, failure 1, 2 retries: again in 1.0s",
    ),
    Why.OVER_BUDGET: (
        only(stop_over_budget(snapshot(run("a"), run("b"), fleet=2 * GIB), GIB, policy())),
        "all runs hold 2 GiB, the budget is 1 GiB: the youngest waits",
    ),
    Why.DISK_FULL: (
        explain_full_disk(DiskState(MIB, ballast_bytes=16 * MIB), "/state"),
        "1 MiB left on the disk of /state: starts go on at 64 MiB",
    ),
    Why.BALLAST_RELEASED: (
        explain_ballast(DiskState(0, 16 * MIB, 16 * MIB), "/state"),
        "the disk of /state is full: released 16 MiB for the store",
    ),
    Why.BALLAST_RESTORED: (
        explain_ballast(DiskState(64 * MIB, 16 * MIB), "/state"),
        "the disk of /state has room: 16 MiB kept for the store",
    ),
    Why.LOG_TOTAL: (
        explain_removed_output(3, 12 * MIB, GIB),
        "removed the oldest 3 outputs (12 MiB): log_total is 1 GiB",
    ),
    Why.LOGS_SMALLER: (
        explain_smaller_logs(LogUsage(0, GIB), GIB),
        "output takes 1 GiB of log_total 1 GiB: live logs get smaller",
    ),
    Why.KEEPER_LOST: (judge(run())[1], "its keeper died"),
    Why.KEEPER_HANGS: (
        explain_hang(),
        "the keeper has not answered for 4.0s: nothing starts until it does, and after 1m00s it is "
        "replaced",
    ),
    Why.KEEPER_REPLACED: (
        explain_replacement(),
        "the keeper did not answer for 1m00s: it is replaced, and its runs are resumed",
    ),
    Why.KEEPER_FAILS: (
        after_failed_keeper(None, "MemoryError", 0.0).reason,
        "the keeper cannot be started: MemoryError: nothing starts until it can, it is tried again",
    ),
    Why.SUSPECTED: (
        after_death(status(suspicion=Suspicion(2)), DEATH, policy()).reason,
        "the keeper died 3 times while it ran: it runs again with fewer others",
    ),
    Why.SUSPECTS_FIRST: (
        trial_of(Suspicion(4), Suspicion(3)),
        "the keeper died 4 times, with each of 2 jobs: they run first, 1 now",
    ),
    Why.KEEPER_ALONE: (
        trial_of(Suspicion(4, alone=1)),
        "the keeper died while a ran alone: nothing starts for 5.0s, to see whether the keeper "
        "lives without that job",
    ),
    Why.ENDS_KEEPER: (
        after_death(status(suspicion=Suspicion(5, alone=3)), DEATH, policy()).reason,
        "the keeper died 6 times while it ran, the last 4 times with nothing else running, and "
        "never without it: it is not started again",
    ),
    Why.SUPERVISOR_LOST: (Reason(Why.SUPERVISOR_LOST), "its ramherd died"),
    Why.DEPENDENCY_DONE: (
        next(next_dependants(status("a", JobState.DONE), [
            status(job("b", after=("a",)), JobState.WAITING)], {"a": JobState.DONE})).reason,
        "a is done",
    ),
    Why.DEPENDENCY_FAILED: (
        next(next_dependants(status("a", JobState.CANCELLED), [
            status(job("b", after=("a",)), JobState.WAITING)], {})).reason,
        "a is cancelled",
    ),
    Why.INTERRUPTED: (only(stop_interrupted(snapshot(run(), interrupts=1))), "interrupted"),
    Why.GRACE_OVER: (
        only(kill_overdue(snapshot(run(stop=stopping(RunEnd.CANCELLED, 0.0))), policy())),
        "still there after 10s",
    ),
    Why.LEFTOVERS: (
        only(clear_leftovers(snapshot(run(procs=3, exit=exited())))),
        "it left 3 processes behind",
    ),
    Why.CONTAINERS: (
        only(warn_of_containers(snapshot(run(engine="/run/docker.sock")))),
        "it talks to /run/docker.sock: containers it starts there are outside of its pen",
    ),
    Why.UNKILLABLE: (
        Reason(Why.UNKILLABLE, processes=2), "2 processes of it cannot be ended",
    ),
    Why.CANNOT_PREPARE: (
        after_failed_start(None, "cannot make /s/runs/1: Read-only file system", 0.0).reason,
        "cannot make /s/runs/1: Read-only file system: nothing starts until that is over",
    ),
    Why.STORE: (
        Reason(Why.STORE, what="cannot use the store /x: database is locked"),
        "cannot use the store /x: database is locked: nothing starts until that is over",
    ),
    Why.OWNER_LOST: (
        explain_lost_owner(7),
        "its ramherd (pid 7) is gone (hint: ramherd run --resume)",
    ),
    Why.NO_RUNTIME: (
        Reason(Why.NO_RUNTIME, what="cannot make /run/x: Permission denied"),
        "cannot make /run/x: Permission denied: other programs do not find this one until that "
        "is over",
    ),
    Why.STORE_RESTORED: (
        Reason(Why.STORE_RESTORED, what="the store /x was deleted: it is written back"),
        "the store /x was deleted: it is written back",
    ),
    Why.RUNTIME_RESTORED: (
        Reason(Why.RUNTIME_RESTORED, path="/run/x"),
        "/run/x was removed or has moved: its files were made again",
    ),
    Why.LEDGER: (
        explain_ledger("cannot use the ledger /x: the disk is full", GIB),
        "cannot use the ledger /x: the disk is full: runs go on with the lease of 1 GiB until that "
        "is over",
    ),
    Why.NO_LEASE: (
        explain_ledger("cannot use the ledger /x: the disk is full", None),
        "cannot use the ledger /x: the disk is full: nothing starts until that is over",
    ),
    Why.LEDGER_SET_ASIDE: (
        Reason(Why.LEDGER_SET_ASIDE, path="/x", problem="malformed", aside="x.aside", leases=2),
        "the ledger /x is broken (malformed): renamed to x.aside, and a new one was made with the "
        "2 leases of live processes",
    ),
    Why.LEASE_WITHOUT_OWNER: (
        Reason(Why.LEASE_WITHOUT_OWNER, owner="o", kind="run", lease_bytes=GIB),
        "dropped a lease of 1 GiB from the ledger: it had no owner",
    ),
    Why.AT_GRANT: (
        Reason(Why.AT_GRANT, grant_bytes=GIB, free_bytes=MIB),
        "uses the 1 GiB it may, and waits for more: 1 MiB are free",
    ),
    Why.ABANDONED: (
        Reason(Why.ABANDONED, software="codex", pid=7, memory_bytes=MIB, evidence="gone"),
        "codex (pid 7, 1 MiB): gone",
    ),
    Why.NAMED: (
        Reason(Why.NAMED, software="gopls", pid=7, memory_bytes=MIB),
        "gopls (pid 7, 1 MiB) was named by its user",
    ),
    Why.WARNING_SIGN: (Reason(Why.WARNING_SIGN, what="41 nodes run"), "41 nodes run"),
    Why.SAID_DONE: (words(result=True), "its agent is through"),
    Why.GAVE_UP: (words(failure="no credit"), "its agent gave up: no credit"),
    Why.NO_RESULT: (words(), "its agent ended without a result"),
    Why.DENIED: (denied("Bash(make)"), "its agent was denied Bash(make)"),
    Why.API_CALM: (
        Reason(Why.API_CALM, agent="claude"),
        "the API keeps up with claude again: starts as before",
    ),
    Why.OVERLOAD: (
        words(failure="529", overloaded=True), "the API is too busy for it: 529",
    ),
    Why.SESSION_LOST: (
        words(code=1, lost_session=True), "its session is gone: it starts over in a new one",
    ),
    Why.COST: (
        cost_reason("it", 1.25, 1.0), "it has cost $1.25, and max_cost_usd is 1.0",
    ),
    Why.COST_LEFT: (
        after_spending(
            replace(status("a"), interrupted=True), MoneyLeft("it", 0.9, 1.0, 0.25)
        ).reason,
        "it has cost $0.9 of max_cost_usd 1.0, and another reply costs $0.25: it does not go on",
    ),
    Why.SUBAGENT_CAP: (
        choose_slot(SlotHolder("a", slots=2), [], Caps(GIB, claude=2)).reason,
        "2 subagents run in this session, and CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS is 2",
    ),
    Why.COST_SHARE: (
        words(code=1, failure="no budget", cost_usd=0.5, share_usd=0.5),
        "it has cost $0.5, its share of the herd's: goes on with what is left",
    ),
    Why.STEP_DOWN: (
        Reason(Why.STEP_DOWN, model="haiku", usual="opus"),
        "memory is short: haiku instead of opus",
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
        "cannot merge the branches that it starts from: git merge-tree: no space (hint: ramherd "
        "retry c)",
    ),
    Why.HERD_STUCK: (
        explain_stuck_herd({"done": 2, "waiting": 1}),
        "waits for its user: 2 done, 0 failed, 0 cancelled, 1 waiting",
    ),
    Why.RESIDUE: (Reason(Why.RESIDUE, residue_bytes=MIB), "it left 1 MiB in tmpfs"),
    Why.ADOPTED: (Reason(Why.ADOPTED), "it went on while the service was away"),
    Why.ASKED: (
        Reason(Why.ASKED, by="ramherd cancel"), "asked for by the user (ramherd cancel)"
    ),
    Why.NEAR_BUDGET: (
        Reason(Why.NEAR_BUDGET, used_bytes=GIB, budget_bytes=GIB),
        "all runs use 1 GiB of the budget of 1 GiB",
    ),
    Why.NEAR_LIMIT: (
        Reason(Why.NEAR_LIMIT, used_bytes=MIB, limit_bytes=GIB),
        "uses 1 MiB of its limit of 1 GiB",
    ),
    Why.HERD_OVER: (
        Reason(Why.HERD_OVER, done=3, failed=1, cancelled=0), "3 done, 1 failed, 0 cancelled",
    ),
    Why.ALLOWED: (
        explain_retry(["Bash(npm test)", "edit"]), "the user has allowed Bash(npm test), edit",
    ),
    Why.ON_DONE_FAILED: (
        Reason(Why.ON_DONE_FAILED, what="exit status 1: no such branch"),
        "its on_done command failed: exit status 1: no such branch",
    ),
    Why.STALLED: (
        find_stall(
            OutputSilence(0.0), at_s=720.0, uncounted_s=0.0, stall_after_s=600.0, tool="Bash"
        ) or Reason(Why.UNKNOWN),
        "its agent has printed nothing for 12m00s, in the tool Bash",
    ),
    Why.CONTINUED: (
        explain_continuation(Reason(Why.INTERRUPTED)),
        "ramherd run --resume goes on with it (interrupted)",
    ),
    Why.PAUSED: (explain_user_pause(), "nothing starts until ramherd resume"),
    Why.RESUMED: (explain_resumed(), "starts go on"),
    Why.WARM: (
        Reason(Why.WARM, jobs=2, most_jobs=5), "goes on in a warm process: job 2 of 5 in it",
    ),
    Why.WARM_GONE: (
        judge(run(refused=(3, "no such process")))[1],
        "the warm process that it was to have is gone: it gets one of its own",
    ),
    Why.RETIRED: (
        retired(Worn(5, 5, MIB, 0.0), "job_limit"),
        "its process serves no other job after 5, at 1 MiB: job_limit",
    ),
    Why.SERVICE_STOPS: (
        explain_service_end(), "the service stops: it goes on when the service does",
    ),
    Why.OVERLOAD_PACE: (
        explain_slot("claude", 3.0), "the API of claude is too busy: the next start is in 3.0s",
    ),
    Why.USAGE_LIMIT: (
        explain_window(window(), 0.0),
        "claude is at its usage limit until 08:45 (five-hour window)",
    ),
    Why.USAGE_PROBE: (
        explain_window(window(), MORNING_S + 9e5),
        "the limit of claude has reset (five-hour window): one job starts first",
    ),
    Why.USAGE_SERVED: (explain_served(window()), "the API serves claude again"),
    Why.NEAR_USAGE_LIMIT: (
        explain_near("claude", "five_hour", 0.914), "claude has used 91 % of its five-hour window",
    ),
    Why.NO_ACCESS: (
        explain_window(window("no_access"), 0.0),
        "the API does not accept the account of claude (so it said): log in, or set its key",
    ),
    Why.LIMIT_FALLBACK: (
        explain_fallback(Brief("claude", "x", "opus"), "sonnet"),
        "the limit of opus is reached: the job uses sonnet instead",
    ),
    Why.START_AT: (explain_start_at(MORNING_S), "starts at 08:45"),
    Why.UNKNOWN: (
        reason_from_json({"why": "moonlight", "hours": 3}),
        "moonlight (a reason of another version of ramherd)",
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


# What the governor says is made in scenes of its own: there the numbers are read off its source.
GOVERNORS = list(reasons_in_source(Path(governor.__file__).parent))


def test_the_governors_sentences_take_the_numbers_that_it_gives() -> None:
    """Each place that makes a reason gives all that its sentence asks for."""
    for why, numbers in GOVERNORS:
        assert set(re.findall(r"{(\w+)}", SENTENCES[why])) <= numbers


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
    wanted = set(re.findall(r"{(\w+)}", SENTENCES[why]))

    assert wanted <= set(MADE[why][0].numbers)


def test_a_reason_as_json_is_its_why_and_its_numbers() -> None:
    """Closed names and plain numbers, for events and `--json`."""
    reason = Reason(Why.TOO_BIG, need_bytes=2, budget_bytes=1)

    assert reason.as_json() == {"why": "too_big", "need_bytes": 2, "budget_bytes": 1}


def test_the_limit_on_polled_runs_has_the_same_words() -> None:
    """Who killed it does not change what it is told."""
    over = run("r", LIMITED, used=2 * GIB, kernel_limits=False)

    sentence = render_reason(only(stop_over_limit(snapshot(over))))

    assert sentence == "killed at its memory_limit of 1 GiB (peak 2 GiB)"


def test_a_signal_without_a_name_has_its_number() -> None:
    """Real-time signals, and numbers that are none."""
    assert signal_name(9) == "SIGKILL"
    assert signal_name(40) == "signal 40"
    assert signal_name(0) == "signal 0"


def test_braces_in_a_text_are_no_fields() -> None:
    """An error message may hold any character."""
    assert render_reason(Reason(Why.NOT_STARTED, what="cannot {start} {0}")) == "cannot {start} {0}"
