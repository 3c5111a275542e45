"""What real agents printed (tests/data/agents, by e2e/capture.py), as facts."""

import json
from pathlib import Path
from typing import Any

import pytest

from ramherd.agents import find_agent
from ramherd.agents.denials import deny_call
from ramherd.agents.json_lines import Events
from ramherd.agents.progress import (
    DENIED_KEPT,
    TOO_LONG,
    TOOLS_KEPT,
    Denied,
    Failure,
    ModelText,
    Overload,
    Progress,
    Retry,
    SessionOpened,
    Spent,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    next_progress,
)

DATA = Path(__file__).parents[2] / "data/agents"
REAL = ("claude", "codex", "gemini", "opencode", "qwen")


def facts_of(name: str, data: bytes, piece: int = 1 << 20) -> list[object]:
    events = Events(find_agent(name).reader())
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    return [*(fact for part in pieces for fact in events.feed(part)), *events.close()]


def progress_of(name: str, script: str) -> Progress:
    return next_progress(Progress(), facts_of(name, read(name, script)))  # type: ignore[arg-type]


def read(name: str, script: str) -> bytes:
    return (DATA / f"{name}-{script}.jsonl").read_bytes()


@pytest.mark.parametrize("name", REAL)
def test_a_run_with_a_tool(name: str) -> None:
    """Two turns, the tool in the first, and the last words as the result."""
    progress = progress_of(name, "shell")

    assert progress.session
    assert (progress.result, progress.failure) == ("The shell said it.", None)
    assert progress.turns == 2
    assert progress.is_between_turns
    assert progress.tokens_in >= 200
    assert progress.tokens_out >= 20
    assert (progress.cost_usd > 0) is find_agent(name).reports_cost


@pytest.mark.parametrize("name", REAL)
def test_a_run_cut_short_has_no_result(name: str) -> None:
    """Whatever its exit code: gemini ends with 0 on TERM."""
    progress = progress_of(name, "cut")

    assert progress.session
    assert progress.result is None
    assert progress.turns == 2


@pytest.mark.parametrize("name", ["codex", "gemini", "qwen"])
def test_a_tool_is_in_use_until_its_result_is_there(name: str) -> None:
    """Cut in its second tool: that one is open, the first is not."""
    data = read(name, "cut")
    lines = data.splitlines(keepends=True)
    if name == "qwen":  # it says that the tool was cancelled
        data = b"".join(line for line in lines if b"ancel" not in line)
    progress = next_progress(Progress(), facts_of(name, data))  # type: ignore[arg-type]

    assert len(progress.tools) == 1
    assert progress.tool in ("command_execution", "run_shell_command")
    assert not progress.is_between_turns
    assert progress.resumed().tools == ()


@pytest.mark.parametrize("name", REAL)
def test_a_run_that_failed(name: str) -> None:
    """The error's own words, and no result."""
    progress = progress_of(name, "broken")

    assert progress.result is None
    assert progress.failure
    assert "bad request" in progress.failure
    assert progress.overloads == 0


def test_qwen_calls_an_error_a_success() -> None:
    """Older ones say so in the result's text alone."""
    line = b'{"type":"result","subtype":"success","is_error":false,"result":"[API Error: 400 x]"}'

    assert Failure("[API Error: 400 x]") in facts_of("qwen", line)


def test_gemini_calls_a_loop_a_success() -> None:
    """It stops before the task is done, with an exit code of 0."""
    lines = b"""
{"type":"error","severity":"warning","message":"Loop detected, stopping execution"}
{"type":"result","status":"success","stats":{}}
"""

    assert Failure("Loop detected, stopping execution") in facts_of("gemini", lines)


def test_claude_waits_out_an_overload() -> None:
    """Each retry says how long."""
    facts = facts_of("claude", read("claude", "overload"))

    assert [fact.wait_s > 0.1 for fact in facts if isinstance(fact, Overload)] == [True, True]
    assert progress_of("claude", "overload").result == "At last."


def test_codex_gives_up_on_an_overload() -> None:
    """It failed, and it was the load: both are said, once."""
    progress = progress_of("codex", "refused")

    assert progress.failure
    assert progress.overloads == 1


def test_codex_tells_of_other_trouble() -> None:
    """A broken connection is tried again, and no overload."""
    line = b'{"type":"error","message":"Reconnecting... 1/5 (stream disconnected)"}'

    assert facts_of("codex", line) == [Retry("Reconnecting... 1/5 (stream disconnected)")]


def test_subagents_of_claude() -> None:
    """Their tools are tools in use; only the main conversation's replies are turns."""
    facts = facts_of("claude", read("claude", "agents"))
    names = [fact.name for fact in facts if isinstance(fact, ToolStarted)]

    assert sorted(names) == ["Agent", "Agent", "Bash", "Bash"]
    progress = progress_of("claude", "agents")
    assert progress.turns == 2
    assert progress.tokens_in == 600
    assert progress.result == "Both are back."


def test_cursor_by_its_documentation() -> None:
    """No run of it was ever seen: these are the documented shapes."""
    lines = b"""
{"type":"system","subtype":"init","session_id":"s-1","model":"m","cwd":"/"}
{"type":"user","message":{"role":"user","content":[{"type":"text","text":"do it"}]}}
{"type":"tool_call","subtype":"started","call_id":"c-1","tool_call":{"shellToolCall":{"args":{}}}}
{"type":"tool_call","subtype":"completed","call_id":"c-1","tool_call":{"shellToolCall":{}}}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Done."}]}}
{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s-1"}
"""
    facts = facts_of("cursor", lines)
    progress = next_progress(Progress(), facts)  # type: ignore[arg-type]

    assert facts[:3] == [SessionOpened("s-1"), TurnStarted(), ToolStarted("c-1", "shellToolCall")]
    assert facts[3:5] == [ToolEnded("c-1"), TurnEnded()]
    assert (progress.result, progress.turns) == ("Done.", 2)
    failed = b'{"type":"result","subtype":"error","is_error":true,"result":"no quota left"}'
    assert facts_of("cursor", failed) == [Overload("no quota left"), Failure("no quota left")]


def test_a_command_says_nothing() -> None:
    """Its output is its own."""
    assert facts_of("command", read("claude", "shell")) == []


@pytest.mark.parametrize("piece", [1, 7, 4096])
@pytest.mark.parametrize("name", REAL)
def test_pieces_of_any_size_say_the_same(name: str, piece: int) -> None:
    """A pipe cuts where it likes."""
    data = read(name, "shell")

    assert facts_of(name, data, piece) == facts_of(name, data)


@pytest.mark.parametrize("name", REAL)
def test_a_last_line_without_its_end(name: str) -> None:
    """A kill in the middle of a line loses that line alone."""
    data = read(name, "shell").rstrip(b"\n")
    whole = facts_of(name, data)
    last = data.rindex(b"\n") + 1

    for cut in (last + 1, (last + len(data)) // 2, len(data) - 1):
        assert facts_of(name, data[:cut]) == facts_of(name, data[:last])
    assert facts_of(name, data + b"\n") == whole


LONG = b"x" * (1 << 20)


@pytest.mark.parametrize(
    ("name", "script", "word"),
    [
        ("claude", "shell", b'"from-the-shell"'),
        ("codex", "shell", b'"from-the-shell\\n"'),
        ("gemini", "shell", b'"from-the-shell"'),
        ("qwen", "shell", b'"from-the-shell"'),
    ],
)
def test_the_result_of_a_tool_may_be_of_any_length(name: str, script: str, word: bytes) -> None:
    """Too long to keep, its head still says which tool has ended."""
    data = read(name, script)
    long = data.replace(word, b'"' + LONG + b'"')
    short, whole = facts_of(name, long, 65536), facts_of(name, data)

    (place,) = (at for at, fact in enumerate(whole) if isinstance(fact, ToolEnded))
    ended = whole[place]
    assert isinstance(ended, ToolEnded)
    assert (ended.output, ended.lines) == ("from-the-shell", 1)
    assert short == [*whole[:place], ToolEnded(ended.id, TOO_LONG, 1), *whole[place + 1 :]]


@pytest.mark.parametrize("name", REAL)
def test_what_the_model_wrote_and_what_its_tools_were_called_with(name: str) -> None:
    """The same in all CLIs: one call with its command and its output, then a message."""
    facts = facts_of(name, read(name, "shell"))
    (tool,) = (fact for fact in facts if isinstance(fact, ToolStarted))
    (ended,) = (fact for fact in facts if isinstance(fact, ToolEnded))
    said = "".join(fact.text for fact in facts if isinstance(fact, ModelText))

    assert (tool.argument, tool.by_subagent) == ("echo from-the-shell", False)
    assert (ended.id, ended.output, ended.is_error) == (tool.id, "from-the-shell", False)
    assert said == "The shell said it."


@pytest.mark.parametrize(
    ("item", "argument", "output", "is_error"),
    [
        ({"type": "command_execution", "command": "/bin/zsh -lc ls", "exit_code": 0,
          "aggregated_output": "a\n", "status": "completed"}, "ls", "a", False),
        ({"type": "command_execution", "command": "bash -lc 'it''s'", "exit_code": 1,
          "aggregated_output": "", "status": "failed"}, "bash -lc 'it''s'", "failed", True),
        ({"type": "file_change", "changes": [{"path": "a.c", "kind": "add"}, {"path": "b.c"}],
          "status": "completed"}, "a.c, b.c", "", False),
        ({"type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {"path": "p"},
          "error": {"message": "no such tool"}, "status": "failed"}, "s.t p", "no such tool", True),
        ({"type": "web_search", "query": "how"}, "how", "", False),
    ],
)  # fmt: skip
def test_items_of_codex(
    item: dict[str, object], argument: str, output: str, is_error: bool
) -> None:
    """Each with what it is about; a change of files comes with its end alone."""
    line = json.dumps({"type": "item.completed", "item": {"id": "i", **item}}).encode()
    lines = output.count("\n") + 1 if output else 0

    assert facts_of("codex", line) == [
        TurnStarted(),
        ToolStarted("i", str(item["type"]), argument),
        ToolEnded("i", output, lines, is_error),
        TurnEnded(),
    ]


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "qwen"])
def test_a_result_may_be_of_any_length(name: str) -> None:
    """The run is done in as many turns, though what it said is lost."""
    data = read(name, "shell").replace(b'"The shell said', b'"' + LONG)
    progress = next_progress(Progress(), facts_of(name, data))  # type: ignore[arg-type]

    assert (progress.result, progress.turns) == (TOO_LONG, 2)
    assert progress.is_between_turns


@pytest.mark.parametrize("name", ["claude", "gemini", "qwen"])
def test_a_tool_may_be_given_arguments_of_any_length(name: str) -> None:
    """As a file to write: no tool stays in use for ever because its start was not understood."""
    data = read(name, "shell").replace(b'"echo from-the-shell"', b'"' + LONG + b'"')
    progress = next_progress(Progress(), facts_of(name, data))  # type: ignore[arg-type]

    assert progress.tools == ()
    assert progress.turns == 2
    assert progress.is_between_turns


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("claude", '{"type":"assistant","message":{"id":"%d","content":[%s]}}'),
        ("gemini", '{"type":"tool_use","tool_id":"%d%.0s"}'),
        ("codex", '{"type":"item.started","item":{"id":"%d%.0s","type":"command_execution"}}'),
    ],
)
def test_tools_without_end_are_not_all_kept(name: str, line: str) -> None:
    """Nothing that an agent prints makes ramherd large."""
    tool = '{"type":"tool_use","name":"Bash","id":"%d"}'
    lines = [line % (at, tool % at if name == "claude" else "") for at in range(5000)]
    facts = facts_of(name, "\n".join(lines).encode())
    progress = next_progress(Progress(), facts)  # type: ignore[arg-type]

    assert len(progress.tools) == TOOLS_KEPT


def test_tokens_and_cost_add_up_over_runs() -> None:
    """Counts that continue after a resume are not added twice; others are added."""
    first = next_progress(Progress(), [Spent(100, 10, 0.5)])
    again = next_progress(first.resumed(), [Spent(100, 10, 0.5), Spent(cost_usd=0.5, whole=True)])
    goes_on = next_progress(first.resumed(), [Spent(150, 15, 0.75, whole=True)])

    assert (again.tokens_in, again.tokens_out, again.cost_usd) == (200, 20, 1.0)
    assert (goes_on.tokens_in, goes_on.tokens_out, goes_on.cost_usd) == (150, 15, 0.75)


COMMAND = "sleep 0.5; touch b.txt"
DENIALS = {
    "claude": [("Write", "/home/user/work-claude/a.txt", "Write"),
               ("Bash", COMMAND, f"Bash({COMMAND})")],
    "codex": [("shell", COMMAND, "workspace-write"), ("apply_patch", "", "workspace-write")],
    "gemini": [("write_file", "/home/user/work-gemini/a.txt", "write_file"),
               ("run_shell_command", COMMAND, f"run_shell_command({COMMAND})")],
    "opencode": [("write", "", "write"), ("bash", COMMAND, f"bash({COMMAND})")],
    "qwen": [("write_file", "/home/user/work-qwen/a.txt", "write_file"),
             ("run_shell_command", COMMAND, f"run_shell_command({COMMAND})")],
}  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_calls_that_were_refused_are_reported(name: str) -> None:
    """Each with its tool, what it was about, and the rule that would have allowed it. codex has
    patches on stderr only.
    """
    facts = facts_of(name, read(name, "denied"))
    if name == "codex":
        facts += find_agent(name).read_errors((DATA / "codex-denied.err").read_text())
    progress = next_progress(Progress(), facts)  # type: ignore[arg-type]

    assert list(progress.denied) == [Denied(*parts) for parts in DENIALS[name]]
    # opencode ends without an answer when it was refused something.
    assert progress.result == (None if name == "opencode" else "I could not do it.")


@pytest.mark.parametrize("name", ["claude", "qwen"])
def test_a_stopped_run_has_its_refusals_too(name: str) -> None:
    """Without its result, and with a result that is too long to keep."""
    lines = read(name, "denied").splitlines(keepends=True)
    stopped = next_progress(Progress(), facts_of(name, b"".join(lines[:-1])))  # type: ignore[arg-type]

    assert list(stopped.denied) == [Denied(*parts) for parts in DENIALS[name]]


def test_a_refused_call_with_a_relative_path_counts_once() -> None:
    """claude's result has the whole path of it."""
    stream = read("claude", "denied").replace(
        b'"file_path":"/home/user/work-claude/a.txt"', b'"file_path":"a.txt"', 1
    )
    progress = next_progress(Progress(), facts_of("claude", stream))  # type: ignore[arg-type]

    assert len(progress.denied) == len(DENIALS["claude"])
    assert progress.denied[0].what == "a.txt"


@pytest.mark.parametrize("script", ["shell", "broken", "cut"])
@pytest.mark.parametrize("name", REAL)
def test_calls_that_failed_were_not_refused(name: str, script: str) -> None:
    """A tool that fails, or that is cut short, was allowed."""
    assert progress_of(name, script).denied == ()


def test_cursor_names_what_became_of_a_call() -> None:
    """By its documentation: the name of the result says it."""
    call = {"shellToolCall": {"args": {"command": "npm test"}, "result": {"rejected": {}}}}
    event = {"type": "tool_call", "subtype": "completed", "call_id": "1", "tool_call": call}

    assert list(find_agent("cursor").reader().read(event)) == [Denied("shell", "npm test")]


def test_a_gemini_tool_that_does_not_exist_was_not_refused() -> None:
    """A model may invent one; the tools that it is not given without permission are known."""
    reader = find_agent("gemini").reader()
    use = {"type": "tool_use", "tool_name": "fly", "tool_id": "1", "parameters": {}}
    result = {"type": "tool_result", "tool_id": "1", "error": {"type": "tool_not_registered"}}

    assert Denied("fly", "", "fly") not in [*reader.read(use), *reader.read(result)]


def test_refusals_that_are_kept_are_few() -> None:
    """The same one counts once, and a model that tries on and on fills no memory."""
    again = [Denied("Bash", "npm test")] * 3
    many = [Denied("Bash", f"npm test {number}") for number in range(100)]

    assert len(next_progress(Progress(), again).denied) == 1
    assert len(next_progress(Progress(), many).denied) == DENIED_KEPT


@pytest.mark.parametrize(
    ("args", "what", "allow"),
    [
        ({"command": "npm test"}, "npm test", "Bash(npm test)"),
        ({"command": "cat <<E\nx\nE"}, "cat <<E x E", "Bash(cat:*)"),
        ({"command": "x" * 500}, "x" * 200, f"Bash({'x' * 120}:*)"),
        ({"command": " \n"}, "", "Bash"),
        ({"url": "http://a"}, "http://a", "Bash"),
        ({"command": ["npm"]}, "npm", "Bash"),
        ({}, "", "Bash"),
    ],
)
def test_a_call_in_a_few_words(args: dict[str, Any], what: str, allow: str) -> None:
    """One line and of bounded length; a long command is allowed by its program."""
    assert deny_call("Bash", args, ":*") == Denied("Bash", what, allow)
