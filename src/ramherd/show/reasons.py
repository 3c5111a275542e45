"""One sentence for each reason, made from the reason's numbers."""

import signal
import time
from collections.abc import Callable

from ramherd.core.reasons import Number, Reason, Why, reason_from_json
from ramherd.core.units import format_duration, format_size

# Closed names, as in the store and in `--json`.
CODES = ("after", "cause")
# `{runs:run|runs}` is the number with the matching word: `1 run`, `2 runs`.
SENTENCES = {
    Why.SUBMITTED: "submitted",
    Why.FITS: "started: expects {need_bytes}, {have_bytes} free",
    Why.NO_ROOM_BUDGET: (
        "needs {need_bytes}, but only {have_bytes} of the {budget_bytes} budget is free"
    ),
    Why.NO_ROOM_MACHINE: "needs {need_bytes}, but only {have_bytes} of memory is free",
    Why.MAX_PARALLEL: "{running:is|are} running, and max_parallel is {limit}",
    Why.SUBAGENT_CAP: (
        "{running:subagent is|subagents are} running in this session, and {setting} is {limit}"
    ),
    Why.STARTING: "{starting:run is|runs are} still starting, and the limit is {limit}",
    Why.TOO_BIG: "needs {need_bytes}, more than the whole budget of {budget_bytes}",
    Why.NO_WAIT: "not enough memory is free now, and --no-wait was given",
    Why.EXITED: "exit status {code}",
    Why.SIGNALLED: "terminated by {signal}",
    Why.TIMEOUT: "exceeded its timeout of {limit_s}",
    Why.LIMIT_KILL: "killed at its memory_limit of {limit_bytes} (peak {peak_bytes})",
    Why.OOM_KILL: "killed by the kernel: out of memory (peak {peak_bytes})",
    Why.HEAP_EXHAUSTED: (
        "ran out of V8 heap (peak {peak_bytes}); the machine did not run out of memory"
    ),
    Why.NODE_ABORT: (
        "terminated by SIGABRT (peak {peak_bytes}): Node.js aborts when its V8 heap is full"
    ),
    Why.NOT_STARTED: "{what}",
    Why.CANNOT_PREPARE: "{what}: no job starts until this is resolved",
    Why.RETRY: "{failure}: retry {failures} of {retries} in {delay_s}",
    Why.OVER_BUDGET: (
        "runs use {used_bytes}, more than the budget of {budget_bytes}: the youngest run is "
        "stopped and queued again"
    ),
    Why.KEEPER_LOST: "the keeper process died",
    Why.SUPERVISOR_LOST: "the ramherd process of this job died",
    Why.KEEPER_HANGS: (
        "the keeper has not answered for {silent_s}: no job starts until it answers; it is "
        "replaced after {limit_s}"
    ),
    Why.KEEPER_REPLACED: (
        "the keeper has not answered for {silent_s}: it was replaced, and its runs are resumed"
    ),
    Why.KEEPER_FAILS: (
        "cannot start the keeper: {what}: no job starts until a later attempt succeeds"
    ),
    Why.SUSPECTED: (
        "the keeper died {deaths:time|times} while this job ran: it runs again with fewer jobs "
        "beside it"
    ),
    Why.SUSPECTS_FIRST: (
        "the keeper died {deaths:time|times}: to find the cause, {tried} of "
        "{suspects:suspected job|suspected jobs} must run first"
    ),
    Why.KEEPER_ALONE: (
        "the keeper died while only {name} ran: no job starts for {wait_s}, to test whether the "
        "keeper survives without it"
    ),
    Why.ENDS_KEEPER: (
        "the keeper died {deaths:time|times} while this job ran, {alone:time|times} with no other "
        "job, and never without it: it is not started again"
    ),
    Why.OWNER_LOST: (
        "the ramherd process of this job (pid {pid}) is gone (hint: ramherd run --resume)"
    ),
    Why.DEPENDENCY_DONE: "{dependency} is done",
    Why.DEPENDENCY_FAILED: "not started: depends on {dependency} ({state})",
    Why.INTERRUPTED: "interrupted",
    Why.GRACE_OVER: "did not exit within {grace_s} of SIGTERM",
    Why.UNKILLABLE: "{processes:process|processes} cannot be killed",
    Why.LEFTOVERS: "left {processes:process|processes} behind",
    Why.CONTAINERS: "uses {socket}: containers that it starts there are outside its pen",
    Why.RESIDUE: "left {residue_bytes} in tmpfs",
    Why.STORE: "{what}: no job starts until this is resolved",
    Why.NO_RUNTIME: "{what}: other ramherd commands cannot find this process until this is "
    "resolved",
    Why.RUNTIME_RESTORED: "{path} was removed or moved: its files were created again",
    Why.STORE_RESTORED: "{what}",
    Why.ABANDONED: "{software} (pid {pid}, {memory_bytes}): {evidence}",
    Why.NAMED: "{software} (pid {pid}, {memory_bytes}): selected by the user",
    Why.WARNING_SIGN: "{what}",
    Why.LEDGER: "{what}: runs keep their lease of {lease_bytes} until this is resolved",
    Why.NO_LEASE: "{what}: no job starts until this is resolved",
    Why.LEDGER_SET_ASIDE: (
        "the ledger {path} was damaged ({problem}): it was renamed to {aside}, and a new one was "
        "created with {leases:lease|leases} of live processes"
    ),
    Why.LEASE_WITHOUT_OWNER: "removed a lease of {lease_bytes} without an owner from the ledger",
    Why.DISK_FULL: "{free_bytes} free on the disk of {path}: jobs start again at {need_bytes}",
    Why.BALLAST_RELEASED: (
        "the disk of {path} is full: released the {released_bytes} reserved for the store"
    ),
    Why.BALLAST_RESTORED: (
        "the disk of {path} has free space again: reserved {held_bytes} for the store"
    ),
    Why.LOG_TOTAL: (
        "removed the oldest output, of {runs:run|runs} ({freed_bytes}): log_total is {limit_bytes}"
    ),
    Why.LOGS_SMALLER: (
        "output uses {used_bytes} of log_total {limit_bytes}: the logs of running jobs are cut"
    ),
    # Agents.
    Why.SAID_DONE: "the agent reported success",
    Why.GAVE_UP: "the agent gave up: {what}",
    Why.NO_RESULT: "the agent exited without a result",
    Why.DENIED: "the agent was denied {what}",
    Why.NO_GATEWAY: (
        "the MCP gateway does not run: the agent starts without {servers} (hint: ramherd mcp start)"
    ),
    Why.LARGE_SERVER: (
        "MCP server {server} uses {used_bytes}, more than {warn_bytes}; its limit is {limit_bytes}"
    ),
    Why.OVERLOAD: "the API is overloaded: {what}",
    Why.OVERLOAD_PACE: "the API of {agent} is overloaded: the next job starts in {wait_s}",
    Why.USAGE_LIMIT: "{agent} is at its usage limit until {until_at} ({window})",
    Why.USAGE_PROBE: (
        "the usage limit of {agent} has reset ({window}): a single job starts first, as a test"
    ),
    Why.USAGE_SERVED: "the API accepts requests from {agent} again",
    Why.NEAR_USAGE_LIMIT: "{agent} has used {used} of its {window}",
    Why.NO_ACCESS: "the API rejects the account of {agent} ({what}): log in, or set its API key",
    Why.LIMIT_FALLBACK: "{usual} is at its usage limit: the job uses {model} instead",
    Why.START_AT: "starts at {start_at}",
    Why.API_CALM: "the API of {agent} is no longer overloaded: jobs start without delay",
    Why.SESSION_LOST: "the session of the agent no longer exists: the job starts over in a new one",
    Why.COST: "{whose} has cost ${cost_usd}, and max_cost_usd is {limit_usd}",
    Why.COST_LEFT: (
        "{whose} has cost ${cost_usd}, another reply costs about ${reply_usd}, and max_cost_usd "
        "is {limit_usd}: stopped"
    ),
    Why.COST_SHARE: (
        "the job has spent ${cost_usd}, its share of the herd's cost limit: it continues with "
        "what other jobs leave"
    ),
    Why.STEP_DOWN: "memory is short: the job uses {model} instead of {usual}",
    Why.MERGE_CONFLICT: (
        "{ours} and {theirs} conflict in {files} (resolve it: {merge}, then git commit, "
        "then {retry})"
    ),
    Why.CANNOT_MERGE: "cannot merge the branches that the job starts from: {what} (hint: {retry})",
    Why.HERD_STUCK: (
        "waiting for you: {done} done, {failed} failed, {cancelled} cancelled, {waiting} waiting"
    ),
    # The governor.
    Why.GROWTH: "granted more memory: uses {used_bytes}, {free_bytes} free",
    Why.IDLE_GRANT: "grant reduced: has used no more than {used_bytes} for {idle_s}",
    Why.GIVES_ROOM: "grant reduced for another run: uses {used_bytes}",
    Why.RECLAIM: (
        "up to {most_bytes} of its idle memory moves to swap: {waiting:run needs|runs need} memory"
    ),
    Why.PATIENCE_OVER: "{waiter} has waited {waited_s} for memory: this run makes room",
    Why.YOUNGEST_WAITS: (
        "uses {used_bytes} and needs more, but older runs come first: stopped and queued again"
    ),
    Why.HELD_TOO_LONG: "held for {held_s}, and max_hold is {limit_s}: stopped and queued again",
    Why.DEBT: "{granted_bytes} is granted, but the budget has shrunk to {lease_bytes}",
    Why.OUTGREW_BUDGET: "needs more than the whole budget of {budget_bytes}, even alone",
    Why.SOMEBODY_WAITS: "{waiting:run is|runs are} already waiting for memory",
    Why.NO_ROOM_LEASE: (
        "expects {need_bytes}, but running jobs expect {used_bytes} of {lease_bytes}"
    ),
    Why.STAGGER: (
        "starts are spread out: the runs of the last {within_s} expect {fresh_bytes} more"
    ),
    Why.RAMP: "{running:is|are} running, and the ramp is at {limit}",
    Why.AT_GRANT: "held: uses its whole grant of {grant_bytes}, {free_bytes} free",
    Why.CACHE: "uses {used_bytes}, and {cache_bytes} of page cache",
    Why.LEVEL: "the memory level is {level}",
    Why.CALM: "memory is no longer short",
    Why.CPU_PRESSURE: "CPU pressure is {pressure}",
    Why.MEMORY_PRESSURE: "memory pressure is {pressure}",
    Why.SWAP_IN: "{swap_in_bytes} per second is read back from swap",
    Why.FAILED_STARTS: "{starts:start|starts} failed for lack of memory in the last minute",
    Why.SMALL_BUDGET: "the budget of {budget_bytes} is too small for two runs of {base_bytes}",
    Why.LEAK: "grows by {slope_bytes} per minute and reaches its limit in {left_s}",
    Why.OVER_MARK: "uses {own_bytes} between turns, above its mark of {mark_bytes}",
    # The service.
    Why.ADOPTED: "continued to run while the service was down",
    Why.ASKED: "requested by the user ({by})",
    Why.ALLOWED: "the user allowed {rules}",
    Why.ON_DONE_FAILED: "the on_done command failed: {what}",
    Why.STALLED: "the agent has printed nothing for {silent_s} {doing}",
    Why.CONTINUED: "continued by ramherd run --resume (stopped before: {after})",
    Why.NEAR_BUDGET: "runs use {used_bytes} of the {budget_bytes} budget",
    Why.NEAR_LIMIT: "uses {used_bytes} of its {limit_bytes} limit",
    Why.HERD_OVER: "{done} done, {failed} failed, {cancelled} cancelled",
    Why.PAUSED: "paused by the user: no job starts until `ramherd resume`",
    Why.JOB_PAUSED: "paused by the user at {paused_at}: `ramherd resume JOB` lets it start",
    Why.EDITED: "changed by the user: {changes}",
    Why.NO_SERVICE: "no service is running: `ramherd up` starts one",
    Why.AFTER: "starts after {jobs}",
    Why.BEHIND: "starts after {first}, the first in line",
    Why.RESUMED: "jobs start again",
    # Warm reuse.
    Why.WARM: "started in a warm process: job {jobs} of {most_jobs} in it",
    Why.WARM_GONE: "its warm process is gone: the job starts in a new one",
    Why.RETIRED: "warm process retired after {jobs:job|jobs} at {used_bytes}: {cause}",
    Why.SERVICE_STOPS: "the service is stopping: the job continues when the service starts again",
    Why.UNKNOWN: "{name} (a reason from another version of ramherd)",
}


# The API did not give the time of the reset.
UNTIMED_LIMIT = "{agent} is at its usage limit ({window}) and is tried again at intervals: {what}"
# Recorded by a version that did not record commands.
UNNAMED_REQUEST = "requested by the user"
# A run that is stopped at once gets no SIGTERM first.
NO_GRACE = "killed without a grace period"


class Text(str):
    """A number as text, which selects its noun."""

    __slots__ = ()

    def __format__(self, nouns: str) -> str:
        if not nouns:
            return str(self)
        one, many = nouns.split("|")
        return f"{self} {one if self == '1' else many}"


class Texts(dict[str, Text]):
    """A number that another version of ramherd does not give is unknown."""

    def __missing__(self, _name: str) -> Text:
        return Text("?")


def render_reason(reason: Reason) -> str:
    return choose_sentence(reason).format_map(_texts(reason))


def choose_sentence(reason: Reason) -> str:
    if reason.why is Why.USAGE_LIMIT and "until_at" not in reason.numbers:
        return UNTIMED_LIMIT
    if reason.why is Why.ASKED and "by" not in reason.numbers:
        return UNNAMED_REQUEST
    if reason.why is Why.GRACE_OVER and not reason.numbers.get("grace_s", 1):
        return NO_GRACE
    return SENTENCES[reason.why]


def _texts(reason: Reason) -> Texts:
    texts = Texts((name, Text(_text(name, value))) for name, value in reason.numbers.items())
    if reason.why is Why.RETRY:
        failure = reason_from_json({**reason.numbers, "why": reason.numbers.get("after", "?")})
        texts["failure"] = Text(render_reason(failure))
    return texts


def _text(name: str, value: Number) -> str:
    if isinstance(value, str):
        return value.replace("_", " ") if name in CODES else value
    for ending, render in UNITS.items():
        if name.endswith(ending):
            return render(value)
    return str(value)


def render_percent(fraction: float) -> str:
    return f"{100 * fraction:.0f} %"


def render_clock(at_s: float, now_s: float) -> str:
    """`08:45`, with the date if it is another day: in the time zone of this machine."""
    at, now = time.localtime(at_s), time.localtime(now_s)
    is_today = at[:3] == now[:3]
    return time.strftime("%H:%M" if is_today else "%b %d %H:%M", at)


def signal_name(number: float) -> str:
    try:
        return signal.Signals(int(number)).name
    except ValueError:
        return f"signal {number}"


# The format of a number, by the end of its name.
UNITS: dict[str, Callable[[float], str]] = {
    "_bytes": format_size,
    "_at": lambda at_s: render_clock(at_s, time.time()),
    "_s": format_duration,
    "pressure": render_percent,
    "signal": signal_name,
}
