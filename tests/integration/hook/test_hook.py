"""The hook as Claude calls it, without Claude."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.conftest import Ramherd, await_
from integration.hook.hooks import SESSION_ID, Session, room_for, session, waiting_hooks
from ramherd.hook.claude_settings import hook_command
from ramherd.strays.ancestry import read_records

__all__ = ["session"]  # a fixture: pytest finds it by its name here

# Programs of their own: a hook call never loads them.
OTHERS = {f"ramherd.{name}" for name in ("supervisor", "service", "api", "exec", "doctor", "cli")}
# The heading, what an installation adds to every start, and what `copy` tries to import.
NOT_OURS = {"ramherd", "imported package", "sitecustomize", "usercustomize", "org"}
MIB = 1 << 20


def test_six_at_once_with_room_for_two(session: Callable[..., Session]) -> None:
    """Two pass, four wait, none fails; each that ends lets the next one in, in their order."""
    one = session(**room_for(2))
    one.ask("SessionStart", source="startup")
    for number in range(6):
        one.call(f"call-{number}")
    passed = {one.await_end()["name"] for _two in range(2)}
    await_(lambda: len(one.waiting()) == 4, "four that wait")
    assert set(one.slots()) == passed
    order = [key for key, _since in sorted(waiters(one), key=lambda row: row[1])]

    for number, expected in enumerate(order):
        one.ask("SubagentStart", agent_id=f"agent-{number}", agent_type="x")
        one.ask("SubagentStop", agent_id=f"agent-{number}", agent_type="x")
        assert one.await_end(expected) == {}
        assert len(one.slots()) == 2
    assert all(one.ended[f"call-{number}"] == {} for number in range(6))
    one.ask("SessionEnd", reason="other")
    assert one.leases() == []


def waiters(one: Session) -> list[tuple[str, float]]:
    return [(key, since) for _kind, key, _held, since in one.leases() if since is not None]


def test_after_hook_wait_the_model_is_told(session: Callable[..., Session]) -> None:
    """And nobody stands in the queue any more."""
    one = session(**room_for(1), hook_wait="300ms")
    one.call("first")
    assert one.await_end("first") == {}
    one.call("second")
    said = one.await_end("second")["hookSpecificOutput"]

    assert said["hookEventName"] == "PreToolUse"
    assert said["permissionDecision"] == "deny"
    assert said["permissionDecisionReason"].startswith("ramherd: no memory for another subagent")
    assert "running: 1 in this session" in said["permissionDecisionReason"]
    assert one.waiting() == []
    assert one.slots() == ["first"]


def test_what_never_fits_does_not_wait(session: Callable[..., Session]) -> None:
    """Ten minutes would not help."""
    one = session(subagent_memory="1TiB")
    one.call("huge")
    reason = one.await_end("huge")["hookSpecificOutput"]["permissionDecisionReason"]
    assert "it needs 1 TiB" in reason
    assert "without a subagent" in reason


def test_claudes_own_timeout_comes_later(session: Callable[..., Session]) -> None:
    """A hook that Claude gives 10 s has no time to wait: Claude would let the tool run."""
    one = session(command=hook_command(10), **room_for(1))
    one.call("first")
    one.await_end("first")
    one.call("second")
    assert "hookSpecificOutput" in one.await_end("second")


def test_a_hook_that_is_ended_leaves_the_queue(session: Callable[..., Session]) -> None:
    """The user pressed Escape."""
    one = session(command=hook_command(60).replace(" || true", ""), **room_for(1))
    one.call("first")
    one.await_end("first")
    one.call("second")
    await_(lambda: one.waiting() == ["second"], "one that waits")
    one.tell({"stop": "second"})
    await_(lambda: one.waiting() == [], "nobody that waits")


def test_a_hook_whose_session_was_killed_ends(session: Callable[..., Session]) -> None:
    """It would wait for room that nobody needs."""
    one = session(**room_for(1))
    one.call("first")
    one.await_end("first")
    one.call("second")
    await_(lambda: one.waiting() == ["second"], "one that waits")
    one.close()
    await_(lambda: waiting_hooks() == [], "the end of who waited")
    assert one.waiting() == []


def test_it_loads_the_standard_library_alone(
    session: Callable[..., Session], tmp_path: Path
) -> None:
    """And nothing of another program."""
    errors = tmp_path / "imports"
    command = f"{sys.executable} -X importtime -P -m ramherd.hook 60 2>{errors}"
    one = session(command=command.replace("2>", "2>>"))
    for event in ("SessionStart", "PreToolUse", "SubagentStart", "SubagentStop", "SessionEnd"):
        one.ask(event, tool_name="Agent", tool_use_id="call", agent_id="agent", agent_type="x")
    imported = {line.rpartition("|")[2].strip() for line in errors.read_text().splitlines()}
    assert "ramherd.store.subagent_slots" in imported
    assert not {".".join(name.split(".")[:2]) for name in imported} & OTHERS
    bare = subprocess.run(
        [sys.executable, "-X", "importtime", "-P", "-c", ""],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    site = {line.rpartition("|")[2].strip() for line in bare.stderr.splitlines()}
    tops = {name.partition(".")[0] for name in imported - site} - NOT_OURS
    assert {name for name in tops if not name.startswith("_")} <= sys.stdlib_module_names


def test_a_session_is_warned_when_memory_is_short(session: Callable[..., Session]) -> None:
    """With both numbers; where there is room nothing is said."""
    assert "memory is short" not in str(session().ask("SessionStart"))
    said = session(subagent_memory="1TiB").ask("SessionStart")["systemMessage"]
    assert "memory is short: " in said
    assert "1 TiB" in said


def test_the_tree_of_a_session_is_recorded(session: Callable[..., Session], tmp_path: Path) -> None:
    """With the number of its subagents, for `ramherd ps`."""
    one = session()
    one.ask("SessionStart")
    one.ask("SubagentStart", agent_id="agent", agent_type="x")
    one.ask("SubagentStop", agent_id="agent", agent_type="x")
    notes = list(read_records(str(tmp_path / "runtime")))
    assert [note[:3] for note in notes] == [("claude", SESSION_ID, count) for count in (0, 1, 0)]
    assert {note[3][0] for note in notes} == {one.process.pid}


def test_a_session_is_warned_of_many_strays(session: Callable[..., Session]) -> None:
    """Of what tools left behind, where there are five of them or more."""
    orphans = "CLAUDE_CODE_SESSION_ID=gone setsid sleep 300 >/dev/null 2>&1 & echo $!;"
    done = subprocess.run(["sh", "-c", orphans * 5], capture_output=True, text=True, check=True)
    try:
        said = session().ask("SessionStart")["systemMessage"]
    finally:
        for pid in done.stdout.split():
            os.kill(int(pid), 9)
    assert "processes that tools of Claude left behind hold" in said


def test_on_subagent_stop_is_told_what_is_known(
    session: Callable[..., Session], tmp_path: Path
) -> None:
    """As JSON on its standard input; nothing it prints reaches Claude."""
    one = session(on_subagent_stop="cat > told.json; echo noise")
    one.call("call")
    one.ask("SubagentStart", agent_id="agent", agent_type="explore")
    assert one.ask("SubagentStop", agent_id="agent", agent_type="explore") == {}
    told = json.loads((tmp_path / "project/told.json").read_text())
    assert (told["agent"], told["type"], told["session"]) == ("agent", "explore", SESSION_ID)
    assert 0 <= told["seconds"] < 60
    assert told["before_bytes"] > MIB
    assert told["after_bytes"] > MIB


def test_a_call_that_failed_frees_the_slot_of_its_own_subagent(
    session: Callable[..., Session], tmp_path: Path
) -> None:
    """Not that of another call, whose subagent is about to start."""
    one = session(on_subagent_stop="cat > told.json")
    folder = tmp_path / "talk/subagents"
    folder.mkdir(parents=True)
    (folder / "agent-other.meta.json").write_text("not JSON")
    (folder / "agent-agent.meta.json").write_text('{"toolUseId": "refused"}')
    for name in ("refused", "next"):
        one.call(name)
        one.await_end(name)
    one.ask("SubagentStart", agent_id="agent", agent_type="explore")
    about = {"tool_name": "Agent", "transcript_path": str(tmp_path / "talk.jsonl")}

    one.ask("PostToolUseFailure", tool_use_id="refused", **about)
    assert one.slots() == ["next"]
    assert json.loads((tmp_path / "project/told.json").read_text())["agent"] == "agent"

    one.ask("PostToolUseFailure", tool_use_id="next", **about)
    assert one.slots() == []


def test_a_command_that_fails_is_said_once(session: Callable[..., Session]) -> None:
    """And changes nothing else."""
    one = session(on_subagent_stop="exit 3")
    said = []
    for name in ("one", "two"):
        one.ask("SubagentStart", agent_id=name, agent_type="x")
        said.append(one.ask("SubagentStop", agent_id=name, agent_type="x"))
    assert said == [{"systemMessage": "ramherd: on_subagent_stop: 'exit 3' ended with 3"}, {}]


def test_what_subagents_need_is_learned(session: Callable[..., Session], tmp_path: Path) -> None:
    """From the fourth of a project on; they hold nearly nothing here, so the least is taken."""
    one = session()
    for number in range(5):
        one.call(f"call-{number}")
        one.await_end(f"call-{number}")
        (held,) = [held for kind, _key, held, _since in one.leases() if kind == "subagent"]
        assert held == (128 * MIB if number < 4 else 32 * MIB)
        one.ask("SubagentStart", agent_id=f"agent-{number}", agent_type="x")
        one.ask("SubagentStop", agent_id=f"agent-{number}", agent_type="x")
    path = tmp_path / "state/ramherd/subagents.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(json.loads(path.read_text())[str(tmp_path / "project")]) == 5


def test_the_number_in_all_sessions_is_capped(session: Callable[..., Session]) -> None:
    """Whatever memory there is; after hook_wait the model is told."""
    sessions = [session(max_parallel="2", hook_wait="100ms") for _three in range(3)]
    for one in sessions:
        one.call("call")
        one.await_end("call")
    assert [bool(one.ended["call"]) for one in sessions] == [False, False, True]
    reason = sessions[2].ended["call"]["hookSpecificOutput"]["permissionDecisionReason"]
    assert "no room for another subagent: `max_parallel` is 2" in reason


@pytest.mark.parametrize("cap", ["max_parallel_session", "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS"])
def test_subagents_wait_for_their_own_session_without_end(
    session: Callable[..., Session], cap: str
) -> None:
    """However short hook_wait is; in their order, and in nobody's way."""
    one = session(
        hook_wait="200ms", **({cap: "2"} if cap.islower() else {"variables": {cap: "2"}})
    )  # fmt: skip
    for number in range(4):
        one.call(f"call-{number}")
    passed = [one.await_end()["name"] for _two in range(2)]
    await_(lambda: len(one.line()) == 2, "two that wait")
    assert one.waiting() == []
    time.sleep(0.5)  # longer than hook_wait
    order = one.line()
    assert len(order) == 2
    for number, (expected, ended) in enumerate(zip(order, passed, strict=True)):
        one.ask("SubagentStart", agent_id=f"agent-{number}", agent_type="x")
        one.finish(f"agent-{number}", ended)
        assert one.await_end(expected) == {}
    assert one.line() == []


def test_claude_counts_a_subagent_until_its_call_has_ended(
    session: Callable[..., Session],
) -> None:
    """After SubagentStop it would still refuse another one; its memory is free already."""
    one = session(variables={"CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": "1"})
    one.call("first")
    one.await_end("first")
    one.ask("SubagentStart", agent_id="agent", agent_type="x")
    one.ask("SubagentStop", agent_id="agent", agent_type="x", background_tasks=[])
    assert one.slots() == []
    one.call("second")
    await_(lambda: one.line() == ["second"], "one that waits")
    response = {"status": "completed", "agentId": "agent"}
    one.ask("PostToolUse", tool_name="Agent", tool_use_id="first", tool_response=response)
    assert one.await_end("second") == {}


def test_claude_counts_one_in_the_background_a_moment_longer(
    session: Callable[..., Session],
) -> None:
    """Its call ended long ago: nothing tells when Claude has forgotten it."""
    one = session(variables={"CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": "1"})
    one.call("first")
    one.await_end("first")
    one.ask("SubagentStart", agent_id="agent", agent_type="x")
    tasks = [{"id": "agent", "status": "running"}]
    one.ask("SubagentStop", agent_id="agent", agent_type="x", background_tasks=tasks)
    one.call("second")
    await_(lambda: one.line() == ["second"], "one that waits")
    assert one.await_end("second") == {}


def test_a_call_that_claude_refused_is_to_be_tried_again(session: Callable[..., Session]) -> None:
    """Claude says "Do not retry": it does not know that calls wait."""
    one = session()
    one.call("call")
    one.await_end("call")
    error = "Concurrent subagent limit reached. You can run 20 subagents at once. Do not retry."
    said = one.ask("PostToolUseFailure", tool_name="Agent", tool_use_id="call", error=error)
    assert "Call the same subagent again" in said["hookSpecificOutput"]["additionalContext"]
    assert one.slots() == []


def test_two_sessions_take_turns_under_max_parallel(session: Callable[..., Session]) -> None:
    """Eight subagents and four, two at a time: the second session does not wait for the first."""
    one, two = session(max_parallel="2"), session(max_parallel="2")
    for number in range(8):
        one.call(f"a{number}")
    running = [(one, one.await_end()["name"]) for _two in range(2)]
    await_(lambda: len(one.line()) == 6, "six that wait")
    for number in range(4):
        two.call(f"b{number}")
    await_(lambda: len(one.line()) == 10, "ten that wait")
    order = [name for _session, name in running]
    while len(order) < 12:
        ended, call = running.pop(0)
        ended.ask("SubagentStart", agent_id=f"agent-{call}", agent_type="x")
        before = set(one.line())
        ended.finish(f"agent-{call}", call)
        count = len(before)
        await_(lambda count=count: len(one.line()) < count, "the next one")  # type: ignore[misc]
        (next_,) = before - set(one.line())
        running.append((one if next_[0] == "a" else two, next_))
        # A wait of 10 s, as on a busy machine, is explained to the user; no call is refused.
        assert set(running[-1][0].await_end(next_)) <= {"systemMessage"}
        order.append(next_)
    sessions = [name[0] for name in order]
    fifth = [place for place, session in enumerate(sessions) if session == "a"][4]
    assert sessions.index("b") < fifth


def test_status_shows_who_waits_and_who_ran(
    session: Callable[..., Session], ramherd: Ramherd
) -> None:
    """With the reason and the place in line; lifetime and memory before and after."""
    one = session(max_parallel="1")
    for name in ("first", "second", "third"):
        one.call(name)
    first = one.await_end()["name"]
    await_(lambda: len(one.line()) == 2, "two that wait")
    text = ramherd.run("hook", "status").stdout
    assert "subagents: 1 running, 2 waiting" in text
    assert "  place 1, has waited " in text
    assert "  place 2, has waited " in text
    assert "1 is running, and max_parallel is 1" in text

    one.ask("SubagentStart", agent_id="agent", agent_type="explore")
    one.finish("agent", first)
    shown = json.loads(ramherd.run("hook", "status", "--json").stdout)
    assert shown["sessions"][0]["pid"] == one.process.pid
    (ended,) = shown["ended"]
    assert (ended["agent"], ended["type"]) == ("agent", "explore")
    assert ended["before_bytes"] > MIB
    assert ended["after_bytes"] > MIB
    assert 0 <= ended["seconds"] < 60
    assert "explore  ran " in ramherd.run("hook", "status").stdout


def test_a_long_wait_is_reported_to_the_user(session: Callable[..., Session]) -> None:
    """When the subagent starts: how long it waited, and why."""
    one = session(max_parallel="1")
    for name in ("first", "second"):
        one.call(name)
    assert one.await_end()
    await_(lambda: len(one.line()) == 1, "one that waits")
    waits = one.line()[0]
    time.sleep(10.5)  # shorter waits are not reported
    one.ask("Stop", background_tasks=[])
    said = one.await_end(waits)["systemMessage"]
    assert said.startswith("ramherd: a subagent waited 1")
    assert "for its turn: `max_parallel` is 1" in said


def test_a_session_is_warned_of_too_many(session: Callable[..., Session], tmp_path: Path) -> None:
    """MCP servers, node processes, and subagents of other sessions."""
    busy = session()
    for number in range(2):
        busy.ask("SubagentStart", agent_id=f"agent-{number}", agent_type="x")
    node = tmp_path / "bin/node"
    node.parent.mkdir()
    node.symlink_to("/bin/sleep")
    child = subprocess.Popen([str(node), "60"], executable=str(node))
    try:
        said = session(warn_subagents="1", warn_node="1", warn_mcp="0").ask("SessionStart")
    finally:
        child.kill()
        child.wait()
    assert f"claude (pid {busy.process.pid}) runs 2 subagents" in said["systemMessage"]
    assert "node processes run, warn_node is 1: look" in said["systemMessage"]


def test_other_tools_are_none_of_its_business(session: Callable[..., Session]) -> None:
    """Whatever the matcher in the settings says."""
    one = session(subagent_memory="1TiB")
    assert one.ask("PreToolUse", tool_name="Bash", tool_use_id="x") == {}


@pytest.mark.xdist_group("serial")
def test_a_hook_that_waits_costs_little(session: Callable[..., Session]) -> None:
    """Looking at the ledger, not asking it: a few hundredths of a core."""
    one = session(**room_for(1))
    one.call("first")
    one.await_end("first")
    one.call("second")
    (pid,) = await_(waiting_hooks, "a hook that waits")
    await_(lambda: one.waiting() == ["second"], "one that waits")
    before, began = cpu_s(pid), time.monotonic()
    time.sleep(1.0)
    share = (cpu_s(pid) - before) / (time.monotonic() - began)
    assert share < 0.05
    one.ask("Stop", background_tasks=[])
    one.await_end("second")


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_inside_a_pen_it_is_gone_at_once(session: Callable[..., Session], tmp_path: Path) -> None:
    """Nothing is read, loaded or written."""
    errors = tmp_path / "imports"
    command = f"{sys.executable} -X importtime -P -m ramherd.hook 60 2>{errors}"
    one = session(command=command, run="01RUN", subagent_memory="1TiB")
    one.call("call")
    assert one.await_end("call") == {}
    assert "json" not in errors.read_text()
    assert list((tmp_path / "runtime").iterdir()) == []
