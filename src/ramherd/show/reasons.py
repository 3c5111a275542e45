"""One sentence for each reason, made from its own numbers."""

import signal
import time
from collections.abc import Mapping

from ramherd.core.model import Number, Reason, Why
from ramherd.core.units import format_duration, format_size

SENTENCES = {
    Why.SUBMITTED: "submitted",
    Why.FITS: "{need_bytes} fit in {have_bytes}",
    Why.NO_ROOM_BUDGET: "needs {need_bytes}, the budget of {budget_bytes} has {have_bytes} left",
    Why.NO_ROOM_MACHINE: "needs {need_bytes}, the machine has {have_bytes} left",
    Why.MAX_PARALLEL: "{running} run already, and --max-parallel is {limit}",
    Why.SUBAGENT_CAP: "{running} subagents run in this session, and {setting} is {limit}",
    Why.STARTING: "{starting} are starting, {limit} at a time",
    Why.TOO_BIG: "needs {need_bytes}, more than the whole budget of {budget_bytes}",
    Why.NO_WAIT: "there is no memory for it now, and --no-wait was given",
    Why.EXITED: "exit status {code}",
    Why.SIGNALLED: "ended by {signal}",
    Why.TIMEOUT: "ran into its timeout of {limit_s}",
    Why.LIMIT_KILL: "killed at its memory_limit of {limit_bytes} (peak {peak_bytes})",
    Why.OOM_KILL: "killed by the kernel: out of memory (peak {peak_bytes})",
    Why.HEAP_EXHAUSTED: "V8 ran out of heap (peak {peak_bytes}), not the machine out of memory",
    Why.NODE_ABORT: "ended by SIGABRT: node aborts when its V8 heap is full (peak {peak_bytes})",
    Why.NOT_STARTED: "{what}",
    Why.CANNOT_PREPARE: "{what}: nothing starts until that is over",
    Why.RETRY: "{after}, failure {failures}, {retries} retries: again in {delay_s}",
    Why.OVER_BUDGET: "all runs hold {used_bytes}, the budget is {budget_bytes}: the youngest waits",
    Why.KEEPER_LOST: "its keeper died",
    Why.SUPERVISOR_LOST: "its ramherd died",
    Why.KEEPER_HANGS: (
        "the keeper has not answered for {silent_s}: nothing starts until it does, and after "
        "{limit_s} it is replaced"
    ),
    Why.KEEPER_REPLACED: (
        "the keeper did not answer for {silent_s}: it is replaced, and its runs are resumed"
    ),
    Why.KEEPER_FAILS: (
        "the keeper cannot be started: {what}: nothing starts until it can, it is tried again"
    ),
    Why.SUSPECTED: "the keeper died {deaths} times while it ran: it runs again with fewer others",
    Why.SUSPECTS_FIRST: (
        "the keeper died {deaths} times, with each of {suspects} jobs: they run first, {tried} now"
    ),
    Why.KEEPER_ALONE: (
        "the keeper died while {name} ran alone: nothing starts for {wait_s}, to see whether the "
        "keeper lives without that job"
    ),
    Why.ENDS_KEEPER: (
        "the keeper died {deaths} times while it ran, the last {alone} times with nothing else "
        "running, and never without it: it is not started again"
    ),
    Why.OWNER_LOST: "its ramherd (pid {pid}) is gone (hint: ramherd run --resume)",
    Why.DEPENDENCY_DONE: "{dependency} is done",
    Why.DEPENDENCY_FAILED: "{dependency} is {state}",
    Why.INTERRUPTED: "interrupted",
    Why.GRACE_OVER: "still there after {grace_s}",
    Why.UNKILLABLE: "{processes} processes of it cannot be ended",
    Why.LEFTOVERS: "it left {processes} processes behind",
    Why.CONTAINERS: "it talks to {socket}: containers it starts there are outside of its pen",
    Why.RESIDUE: "it left {residue_bytes} in tmpfs",
    Why.STORE: "{what}: nothing starts until that is over",
    Why.NO_RUNTIME: "{what}: other programs do not find this one until that is over",
    Why.RUNTIME_RESTORED: "{path} was removed or has moved: its files were made again",
    Why.STORE_RESTORED: "{what}",
    Why.ABANDONED: "{software} (pid {pid}, {memory_bytes}): {evidence}",
    Why.NAMED: "{software} (pid {pid}, {memory_bytes}) was named by its user",
    Why.WARNING_SIGN: "{what}",
    Why.LEDGER: "{what}: runs go on with the lease of {lease_bytes} until that is over",
    Why.NO_LEASE: "{what}: nothing starts until that is over",
    Why.LEDGER_SET_ASIDE: "the ledger {path} is broken ({problem}): renamed to {aside}, and a new "
    "one was made with the {leases} leases of live processes",
    Why.LEASE_WITHOUT_OWNER: "dropped a lease of {lease_bytes} from the ledger: it had no owner",
    Why.DISK_FULL: "{free_bytes} left on the disk of {path}: starts go on at {need_bytes}",
    Why.BALLAST_RELEASED: "the disk of {path} is full: released {released_bytes} for the store",
    Why.BALLAST_RESTORED: "the disk of {path} has room: {held_bytes} kept for the store",
    Why.LOG_TOTAL: "removed the oldest {runs} outputs ({freed_bytes}): log_total is {limit_bytes}",
    Why.LOGS_SMALLER: "output takes {used_bytes} of log_total {limit_bytes}: live logs get smaller",
    # Of agents.
    Why.SAID_DONE: "its agent is through",
    Why.GAVE_UP: "its agent gave up: {what}",
    Why.NO_RESULT: "its agent ended without a result",
    Why.DENIED: "its agent was denied {what}",
    Why.OVERLOAD: "the API is too busy for it: {what}",
    Why.OVERLOAD_PACE: "the API of {agent} is too busy: the next start is in {wait_s}",
    Why.USAGE_LIMIT: "{agent} is at its usage limit until {until_at} ({window})",
    Why.USAGE_PROBE: "the limit of {agent} has reset ({window}): one job starts first",
    Why.USAGE_SERVED: "the API serves {agent} again",
    Why.NEAR_USAGE_LIMIT: "{agent} has used {used} of its {window}",
    Why.NO_ACCESS: (
        "the API does not accept the account of {agent} ({what}): log in, or set its key"
    ),
    Why.LIMIT_FALLBACK: "the limit of {usual} is reached: the job uses {model} instead",
    Why.START_AT: "starts at {start_at}",
    Why.API_CALM: "the API keeps up with {agent} again: starts as before",
    Why.SESSION_LOST: "its session is gone: it starts over in a new one",
    Why.COST: "{whose} has cost ${cost_usd}, and max_cost_usd is {limit_usd}",
    Why.COST_LEFT: "{whose} has cost ${cost_usd} of max_cost_usd {limit_usd}, and another reply "
    "costs ${reply_usd}: it does not go on",
    Why.COST_SHARE: "it has cost ${cost_usd}, its share of the herd's: goes on with what is left",
    Why.STEP_DOWN: "memory is short: {model} instead of {usual}",
    Why.MERGE_CONFLICT: (
        "{ours} and {theirs} conflict in {files} (resolve it: {merge}, then git commit, "
        "then {retry})"
    ),
    Why.CANNOT_MERGE: "cannot merge the branches that it starts from: {what} (hint: {retry})",
    Why.HERD_STUCK: (
        "waits for its user: {done} done, {failed} failed, {cancelled} cancelled, {waiting} waiting"
    ),
    # The governor's.
    Why.GROWTH: "held at {used_bytes}: gets more, {free_bytes} are free",
    Why.IDLE_GRANT: "uses {used_bytes}, for {idle_s} less than it may",
    Why.GIVES_ROOM: "uses {used_bytes}, gives room to one that needs it",
    Why.PATIENCE_OVER: "{waiter} waits for memory since {waited_s}: the youngest makes room",
    Why.HELD_TOO_LONG: "held for {held_s}, which is {limit_s} or more",
    Why.DEBT: "{granted_bytes} are granted and {lease_bytes} are left of the budget",
    Why.OUTGREW_BUDGET: "alone needs more than the whole budget of {budget_bytes}",
    Why.SOMEBODY_WAITS: "{waiting} running jobs wait for memory first",
    Why.NO_ROOM_LEASE: "expects {need_bytes}, {used_bytes} of {lease_bytes} are expected already",
    Why.STAGGER: "{fresh_bytes} are expected of those started within {within_s}: starts are spread",
    Why.RAMP: "{running} run, and the ramp is at {limit}",
    Why.AT_GRANT: "uses the {grant_bytes} it may, and waits for more: {free_bytes} are free",
    Why.CACHE: "uses {used_bytes}, and {cache_bytes} are page cache",
    Why.LEVEL: "the level is {level}",
    Why.CALM: "memory is no longer short",
    Why.CPU_PRESSURE: "the CPUs are wanted {pressure} of the time",
    Why.MEMORY_PRESSURE: "processes wait for memory {pressure} of the time",
    Why.SWAP_IN: "{swap_in_bytes} a second come back from swap",
    Why.FAILED_STARTS: "{starts} starts failed for memory within a minute",
    Why.SMALL_BUDGET: "the budget of {budget_bytes} is too small for two runs of {base_bytes}",
    Why.LEAK: "leaks {slope_bytes} a minute, {left_s} to its limit",
    Why.OVER_MARK: "holds {own_bytes} between turns, its mark is {mark_bytes}",
    # The service's.
    Why.ADOPTED: "it went on while the service was away",
    Why.ASKED: "asked for by the user ({by})",
    Why.ALLOWED: "the user has allowed {rules}",
    Why.ON_DONE_FAILED: "its on_done command failed: {what}",
    Why.STALLED: "its agent has printed nothing for {silent_s}, {doing}",
    Why.CONTINUED: "ramherd run --resume goes on with it ({after})",
    Why.NEAR_BUDGET: "all runs use {used_bytes} of the budget of {budget_bytes}",
    Why.NEAR_LIMIT: "uses {used_bytes} of its limit of {limit_bytes}",
    Why.HERD_OVER: "{done} done, {failed} failed, {cancelled} cancelled",
    Why.PAUSED: "nothing starts until ramherd resume",
    Why.RESUMED: "starts go on",
    # Warm reuse.
    Why.WARM: "goes on in a warm process: job {jobs} of {most_jobs} in it",
    Why.WARM_GONE: "the warm process that it was to have is gone: it gets one of its own",
    Why.RETIRED: "its process serves no other job after {jobs}, at {used_bytes}: {cause}",
    Why.SERVICE_STOPS: "the service stops: it goes on when the service does",
    Why.UNKNOWN: "{name} (a reason of another version of ramherd)",
}


# The API did not name the time of the reset.
UNTIMED_LIMIT = "{agent} is at its usage limit ({window}), and is tried again at intervals: {what}"


class Texts(dict[str, str]):
    """A number that another version of ramherd does not give is unknown."""

    def __missing__(self, _name: str) -> str:
        return "?"


def render_reason(reason: Reason) -> str:
    sentence = SENTENCES[reason.why]
    if reason.why is Why.USAGE_LIMIT and "until_at" not in reason.numbers:
        sentence = UNTIMED_LIMIT
    return sentence.format_map(_texts(reason.numbers))


def _texts(numbers: Mapping[str, Number]) -> Texts:
    return Texts((name, _text(name, value)) for name, value in numbers.items())


def _text(name: str, value: Number) -> str:
    if isinstance(value, str):
        return value
    if name.endswith("_bytes"):
        return format_size(value)
    if name.endswith("_at"):
        return render_clock(value, time.time())
    if name.endswith("_s"):
        return format_duration(value)
    if name == "signal":
        return signal_name(int(value))
    return str(value)


def render_clock(at_s: float, now_s: float) -> str:
    """`08:45`, with its date if that is another day: in the zone of this machine."""
    at, now = time.localtime(at_s), time.localtime(now_s)
    is_today = at[:3] == now[:3]
    return time.strftime("%H:%M" if is_today else "%b %d %H:%M", at)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
