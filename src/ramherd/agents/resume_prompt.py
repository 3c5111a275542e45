"""The prompt with which a stopped agent continues its session.

After a stop, the history ends in an interrupted tool call, often with "exit code 137". Without an
explanation, agents take that for an out-of-memory kill, or for a failure of their command.
"""

from ramherd.core.model import Reason, Why

# Every resumed session gets this text.
GO_ON = "Go on where you were; first check what is already done."
PLANNED = (
    "A tool call that was cut off, or that ended with exit code 137 or 143 just before, was ended "
    "by that stop: the command did not fail and did not run out of memory. Run it again if it is "
    "still needed."
)
MEMORY = "Ramherd stopped you to give memory to other work"
RESTART = "Ramherd was restarted, and stopped you for that"
CAUSES = {
    Why.PATIENCE_OVER: MEMORY,
    Why.YOUNGEST_WAITS: MEMORY,
    Why.HELD_TOO_LONG: MEMORY,
    Why.DEBT: MEMORY,
    Why.GIVES_ROOM: MEMORY,
    Why.OVER_BUDGET: MEMORY,
    Why.LEAK: "Ramherd restarted your process, because its memory kept growing",
    Why.OVER_MARK: "Ramherd restarted your process, because it had become large",
    Why.ASKED: "The user asked ramherd to restart you",
    Why.INTERRUPTED: "The user interrupted ramherd, and has now resumed your work",
    Why.SERVICE_STOPS: RESTART,
    Why.SUPERVISOR_LOST: "Ramherd or the machine was restarted, which stopped you",
    Why.KEEPER_LOST: RESTART,
    Why.KEEPER_REPLACED: RESTART,
    Why.SUSPECTED: RESTART,
}
# Ramherd did not stop the agent: the results of its tools are as reported.
UNPLANNED = {
    Why.OVERLOAD: "The API was too busy, and your process ended",
    Why.USAGE_LIMIT: "The account had reached its usage limit, and your process ended",
    Why.NO_ACCESS: "The API did not accept the account, and your process ended",
    Why.COST_SHARE: "Your share of the cost was used up; there is more now",
    Why.SIGNALLED: "A signal that ramherd did not send ended your process",
    Why.OOM_KILL: "The kernel ended your process, because memory ran out",
    Why.HEAP_EXHAUSTED: "Your process ran out of heap",
}


def render_resume_prompt(reason: Reason) -> str:
    """`reason` is why the job is in the queue again."""
    why = reason.why
    if why is Why.CONTINUED:
        why = Why(str(reason.numbers["after"]))
    if why is Why.ALLOWED:
        rules = reason.numbers.get("rules", "")
        return f"The user has allowed what you were denied before: {rules}. Use it now. {GO_ON}"
    if why in UNPLANNED:
        return f"{UNPLANNED[why]}; you were started again. {GO_ON}"
    cause = CAUSES.get(why, "Ramherd stopped you")
    return f"{cause}; you were started again. {PLANNED} {GO_ON}"
