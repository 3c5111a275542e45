"""The action of the hook for each event of a session. `admission.py` waits for memory."""

from __future__ import annotations

from ramherd.core.errors import UsageError
from ramherd.core.units import format_size
from ramherd.hook.admission import admit_subagent
from ramherd.measure.transcripts import find_agent_of, transcript_of
from ramherd.store.subagent_slots import (
    LEAVING_BEHIND_S,
    LEAVING_S,
    StartedSubagent,
    SubagentRecord,
)
from ramherd.strays.ancestry import record_tree
from ramherd.system.boot_clock import read_boot_s
from ramherd.system.procfs import read_anonymous_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramherd.core.policies import StrayPolicy
    from ramherd.hook.call import Call
    from ramherd.store.subagent_slots import EndedSubagent

TOOLS = ("Task", "Agent")
# Reasons of a SessionEnd after which the process continues.
GOES_ON = ("clear", "resume")
# Fewer or smaller processes are not reported: a server that the user wants, a watcher.
MANY_STRAYS, MUCH_BYTES = 5, 256 << 20


def handle(call: Call, timeout_s: float) -> None:
    match call.kind:
        case "PreToolUse" if call.text("tool_name") in TOOLS:
            admit_subagent(call, timeout_s)
        case "PostToolUse" if call.text("tool_name") in TOOLS:
            handle_result(call)
        case "PostToolUseFailure" if call.text("tool_name") in TOOLS:
            handle_failure(call)
        case "SubagentStart":
            start_subagent(call)
        case "SubagentStop":
            agent = call.text("agent_id")
            is_behind = agent in find_background_agents(call)
            stop_subagent(call, agent, LEAVING_BEHIND_S if is_behind else LEAVING_S)
        case "Stop":
            call.slots.stop_all_but(find_background_agents(call), call.measure)
            record_session(call)
        case "SessionStart":
            begin_session(call)
        case "SessionEnd":
            end_session(call)


def find_background_agents(call: Call) -> list[str]:
    """Ids of background subagents, which continue after the turn."""
    tasks = call.event.get("background_tasks") or []
    return [str(task.get("id")) for task in tasks if task.get("status") == "running"]


def record_session(call: Call) -> None:
    """For `ramherd ps`: the processes below the session, and the number of its subagents."""
    count = call.slots.count_running()
    record_tree(
        call.runtime, call.session.pid, agent="claude", session=call.session_id, subagents=count
    )


def begin_session(call: Call) -> None:
    call.slots.record(call.measure)
    record_session(call)
    start_gateway(call)
    warn_of_strays(call)
    warn_of_many(call)
    free, need = call.slots.read_free_bytes(call.limits), call.need_bytes()
    if free < need:
        call.report_once(
            f"memory is short: {format_size(max(free, 0))} is free for subagents, which need "
            f"{format_size(need)} each, so they will wait (ramherd hook status)"
        )


def stray_policy(call: Call) -> StrayPolicy:
    from ramherd.core.policies import StrayPolicy  # noqa: PLC0415

    return StrayPolicy(keep=call.config["stray_keep"])


def start_gateway(call: Call) -> None:
    """The MCP servers of the session may be links to the gateway (`ramherd mcp enable claude`)."""
    from pathlib import Path  # noqa: PLC0415

    if (state := Path(call.state)).joinpath("mcp/clients").is_dir():
        from ramherd.act.gateway_start import start_if_enabled  # noqa: PLC0415

        start_if_enabled(state, Path(call.runtime))


def warn_of_strays(call: Call) -> None:
    from ramherd.strays.judge.orphan_proofs import EndedSession  # noqa: PLC0415
    from ramherd.strays.left_behind import find_left_behind  # noqa: PLC0415

    strays = find_left_behind(EndedSession(call.session), stray_policy(call)).found
    held = sum(read_anonymous_bytes(one.pid) for one in strays)
    if len(strays) >= MANY_STRAYS or held >= MUCH_BYTES:
        call.report_once(
            f"{len(strays)} processes that tools of Claude left behind hold {format_size(held)}: "
            "look at them with `ramherd ps`"
        )


def warn_of_many(call: Call) -> None:
    """More MCP servers, node processes or subagents than the settings of `ramherd ps` allow."""
    from ramherd.strays.judge.counts import (  # noqa: PLC0415
        warn_of_nodes,
        warn_of_servers,
        warn_of_subagents,
    )
    from ramherd.strays.program_counts import read_program_counts  # noqa: PLC0415

    most_servers, nodes_limit = call.config["warn_mcp"], call.config["warn_node"]
    try:
        counts = read_program_counts(call.config.software, min(most_servers, nodes_limit - 1))
    except UsageError as error:
        call.report_once(str(error))
        return
    signs = warn_of_servers(counts.servers, most_servers)
    signs += warn_of_nodes(counts.nodes, nodes_limit)
    for pid, running in call.slots.read_other_sessions():
        signs += warn_of_subagents(running, call.config["warn_subagents"], pid, "claude")
    if signs:
        from ramherd.strays.render import render_warning  # noqa: PLC0415

        for sign in signs:
            call.report_once(f"{render_warning(sign)}: look at them with `ramherd ps`")


def start_subagent(call: Call) -> None:
    agent = call.text("agent_id")
    transcript = transcript_of(call.text("transcript_path"), agent)
    starting = StartedSubagent(agent, call.text("agent_type"), transcript)
    call.slots.start(starting, call.need_bytes(), call.limits, call.measure)
    record_session(call)


def handle_result(call: Call) -> None:
    """claude 2.1.197 sends no SubagentStop for a subagent that an API error ended."""
    response = call.event.get("tool_response")
    if isinstance(response, dict) and response.get("status") != "async_launched":
        stop_subagent(call, str(response.get("agentId") or ""))


def handle_failure(call: Call) -> None:
    """The call was denied, or (claude 2.1.325) the API refused its subagent; or Claude had more
    subagents than we have counted.
    """
    from ramherd.hook.messages import REFUSED, ask_again  # noqa: PLC0415

    tool_use = call.text("tool_use_id")
    if REFUSED in call.text("error"):
        call.answer.update(ask_again())
    if agent := find_agent_of(call.text("transcript_path"), tool_use):
        stop_subagent(call, agent)
    else:
        call.slots.cancel(tool_use)


def stop_subagent(call: Call, agent: str, leaving_s: float = 0.0) -> None:
    """Processes that a background subagent left cannot be told from those that its session started
    meanwhile, so they are ended with the session.
    """
    past = call.slots.stop(agent, call.measure, leaving_s=leaving_s)
    if past is None:
        return
    record_session(call)
    record_end(call, agent, past)
    if agent not in find_background_agents(call):
        sweep(call, past.started_s, call.slots.first_start())
    if call.config["on_subagent_stop"]:
        run_command(call, call.config["on_subagent_stop"], agent, past)


def record_end(call: Call, agent: str, past: EndedSubagent) -> None:
    import time  # noqa: PLC0415

    from ramherd.hook.subagent_sizes import learn  # noqa: PLC0415

    facts = describe(call, agent, past)
    learn(call.state, call.project, facts)
    call.slots.record_end(
        SubagentRecord(
            time.time(), call.session_id, agent, past.type, call.project,
            read_boot_s() - past.started_s, past.before_bytes, past.used_bytes, past.most_bytes,
        )
    )  # fmt: skip


def describe(call: Call, agent: str, past: EndedSubagent) -> dict[str, object]:
    return {
        "session": call.session_id, "agent": agent, "type": past.type,
        "seconds": round(read_boot_s() - past.started_s, 1),
        "before_bytes": past.before_bytes, "after_bytes": past.used_bytes,
        "most_bytes": past.most_bytes,
    }  # fmt: skip


def sweep(call: Call, since_s: float, before_s: float | None) -> None:
    from ramherd.strays.judge.orphan_proofs import EndedSession  # noqa: PLC0415
    from ramherd.strays.left_behind import end_left_behind  # noqa: PLC0415

    if not call.config["hook_sweep"] or not call.session_id:
        return
    ended = EndedSession(call.session, call.session_id, since_s, before_s)
    if count := end_left_behind(ended, call.limits.policy.leftover_grace_s, stray_policy(call)):
        what = "process that a tool" if count == 1 else "processes that tools"
        call.report(f"ended {count} {what} had left behind")


def run_command(call: Call, command: str, agent: str, past: EndedSubagent) -> None:
    """The command gets the facts about the subagent on its standard input."""
    from ramherd.hook.stop_command import run  # noqa: PLC0415 - seldom set

    if problem := run(command, {**describe(call, agent, past), "cwd": call.cwd}, call.cwd):
        call.report_once(f"on_subagent_stop: {problem}")


def end_session(call: Call) -> None:
    from ramherd.hook.shown_messages import forget  # noqa: PLC0415

    call.slots.ledger.release_all()
    forget(call.runtime, call.session_id)
    if call.text("reason") not in GOES_ON:
        sweep(call, 0.0, None)
