"""PreToolUse: the subagent starts when there is room for it, or the model gets the reason."""

from __future__ import annotations

import signal
import time

from ramherd.core.errors import StoreUnavailable
from ramherd.decide.budget import largest_budget_bytes
from ramherd.hook.messages import deny, describe_wait
from ramherd.system.boot_clock import read_boot_s
from ramherd.system.procfs import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramherd.decide.governor.subagent_slots import SlotChoice
    from ramherd.hook.call import Call

# A check whether another process wrote to the ledger takes 0.02 ms.
POLL_EVERY_S = 0.25
# The machine's memory changes without a row in the ledger.
ASK_EVERY_S = 2.0
# Claude ends a hook at its timeout and lets the tool run, so the hook answers before that.
MARGIN_S = 10.0
# Shorter waits are not reported to the user.
LONG_S = 10.0


def admit_subagent(call: Call, timeout_s: float) -> None:
    """A subagent's own subagent does not wait: its caller would hold a slot meanwhile, and all of
    them could wait for each other.
    """
    began_s, since_s = time.monotonic(), read_boot_s()
    wait_s = call.config["hook_wait"]
    if call.event.get("agent_id"):
        wait_s = 0.0
    # Before the first row is written: a hook that is ended leaves no row behind.
    signal.signal(signal.SIGTERM, leave_on_term)
    try:
        first = choice = ask(call, since_s)
        if not choice.is_yes and wait_s and can_ever_fit(call):
            last_s = began_s + max(timeout_s - MARGIN_S, 0.0)
            choice = wait(call, choice, since_s, wait_s, last_s)
    except SystemExit:
        stop_waiting(call)
        raise
    waited_s = time.monotonic() - began_s
    if not choice.is_yes:
        stop_waiting(call)
        call.answer = {**call.answer, **deny(choice, waited_s)}
    elif waited_s >= LONG_S:
        call.report(describe_wait(first, waited_s))


def stop_waiting(call: Call) -> None:
    """A row that cannot be removed expires in a few seconds."""
    try:
        call.slots.stop_waiting(call.text("tool_use_id"))
    except StoreUnavailable:
        pass


def ask(call: Call, since_s: float) -> SlotChoice:
    need = call.need_bytes()
    return call.slots.reserve(call.text("tool_use_id"), need, since_s, call.limits, call.measure)


def can_ever_fit(call: Call) -> bool:
    return call.need_bytes() <= largest_budget_bytes(call.read_machine(), call.limits.policy)


def wait(
    call: Call, choice: SlotChoice, since_s: float, wait_s: float, last_s: float
) -> SlotChoice:
    """Waits until there is room, the time is over, or the session has ended. The wait for other
    subagents of the same session is not part of `wait_s`. While the ledger does not answer, its
    last choice holds: there was no room.
    """
    before_s = time.monotonic()
    while not choice.is_yes and (wait_s > 0 or choice.is_patient) and before_s < last_s:
        next_s = ASK_EVERY_S if choice.is_patient else min(wait_s, ASK_EVERY_S)
        until_s = min(before_s + next_s, last_s)
        is_counted = not choice.is_patient
        try:
            await_change(call, until_s)
            if not is_running(call.session):
                raise SystemExit
            choice = ask(call, since_s)
        except StoreUnavailable:
            time.sleep(POLL_EVERY_S)
        now_s = time.monotonic()
        wait_s -= (now_s - before_s) * is_counted
        before_s = now_s
    return choice


def await_change(call: Call, until_s: float) -> None:
    while not call.slots.has_changed() and time.monotonic() < until_s:
        time.sleep(min(POLL_EVERY_S, max(until_s - time.monotonic(), 0.0)))


def leave_on_term(_number: int, _frame: object) -> None:
    """Claude, or the user, has cancelled this call."""
    raise SystemExit
