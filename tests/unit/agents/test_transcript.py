"""Transcripts of what real agents printed (tests/data/agents)."""

import json

import pytest

from ramherd.agents.transcript import Transcript
from ramherd.show.colors import Palette
from ramherd.show.transcript_lines import render_prompt
from unit.agents.test_agent_events import REAL, read

PLAIN = Palette(is_colored=False)
SHELLS = {
    "claude": "Bash", "codex": "command_execution", "gemini": "run_shell_command",
    "opencode": "bash", "qwen": "run_shell_command",
}  # fmt: skip


def transcript(agent: str, data: bytes, piece: int = 1 << 20, palette: Palette = PLAIN) -> str:
    shown = Transcript(agent, palette)
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))
    lines = [*(line for part in pieces for line in shown.feed(part)), *shown.close()]
    return "\n".join(lines)


def claude(*events: object) -> bytes:
    return "".join(json.dumps(event) + "\n" for event in events).encode()


def said(*parts: object, **keys: object) -> object:
    return {"type": "assistant", "message": {"id": str(parts), "content": parts}, **keys}


def call(tool: str, name: str = "Bash", **arguments: object) -> dict[str, object]:
    return {"type": "tool_use", "id": tool, "name": name, "input": arguments}


def answer(tool: str, content: object, *, is_error: bool = False) -> object:
    part = {"type": "tool_result", "tool_use_id": tool, "content": content, "is_error": is_error}
    return {"type": "user", "message": {"content": [part]}}


@pytest.mark.parametrize("piece", [1, 1 << 20])
@pytest.mark.parametrize("agent", REAL)
def test_a_tool_and_an_answer(agent: str, piece: int) -> None:
    """The same text from all CLIs, but for the name of the tool."""
    text = transcript(agent, read(agent, "shell"), piece)
    expected = f"* {SHELLS[agent]}: echo from-the-shell\n    from-the-shell\n\nThe shell said it.\n"
    assert text.removeprefix(codex_warning()) == expected


def codex_warning() -> str:
    return (
        "! Model metadata for `gpt-5` not found. Defaulting to fallback metadata; this can degrade"
        " performance and cause issues.\n"
    )


@pytest.mark.parametrize(
    ("agent", "script", "ending"),
    [
        ("claude", "broken", "\nAPI Error: 400 bad request\n\n! failed"),
        ("codex", "refused", "! failed: exceeded retry limit, last status: 429 Too Many Requests"),
        ("gemini", "broken", '"status":"INVALID_ARGUMENT"}}]'),
        ("opencode", "broken", "! failed: bad request"),
        ("qwen", "broken", "\n[API Error: 400 bad request]\n\n! failed"),
        ("claude", "cut", "* Bash: touch waiting; sleep 20\n    error: Exit code 137"),
        ("codex", "cut", "* command_execution: touch waiting; sleep 20"),
    ],
)
def test_what_went_wrong_is_marked_once(agent: str, script: str, ending: str) -> None:
    """Failures, errors of tools, and a tool that was cut off."""
    text = transcript(agent, read(agent, script))
    assert text.endswith(ending)
    assert text.count("! failed") == ("! failed" in ending or script == "broken")


def test_overloads_have_the_time_to_the_next_try() -> None:
    """One line for each retry."""
    lines = transcript("claude", read("claude", "overload")).split("\n")
    assert lines == [
        "! the API is overloaded: 529 overloaded; next try in 0.6s",
        "! the API is overloaded: 529 overloaded; next try in 1.1s",
        "", "At last.", "",
    ]  # fmt: skip


def test_tools_at_the_same_time() -> None:
    """A result that does not follow its call names the call again; subagents are indented."""
    text = transcript(
        "claude",
        claude(
            said(call("1", command="make a"), call("2", file_path="/b")),
            answer("1", "A"),
            answer("2", [{"type": "text", "text": "B"}]),
            said({"type": "text", "text": "part\nways"}, parent_tool_use_id="2"),
        ),
    )
    assert text.split("\n") == [
        "* Bash: make a", "* Bash: /b",
        "* Bash: make a (its result)", "    A",
        "* Bash: /b (its result)", "    B",
        "", "  part", "  ways", "",
    ]  # fmt: skip


def test_long_outputs_are_cut() -> None:
    """Five lines of 200 characters, and how many there are besides; arguments in one line."""
    output = "\n".join(["x" * 300, *map(str, range(20))])
    events = said(call("1", command="a\n  b " + "c" * 300)), answer("1", output)
    lines = transcript("claude", claude(*events)).splitlines()
    assert lines[0].startswith("* Bash: a b ccc")
    assert len(lines[0]) == 200
    assert lines[1] == "    " + "x" * 197 + "..."
    assert lines[2:] == ["    0", "    1", "    2", "    3", "    ... 16 more lines"]


def test_no_control_character_reaches_the_terminal() -> None:
    """In texts, arguments, outputs and prompts; a tab is spaces."""
    evil = "\x1b]0;title\x07\r\t|"
    text = transcript(
        "claude",
        claude(said({"type": "text", "text": evil}, call("1", evil, command=evil)),
               answer("1", evil, is_error=True), {"type": "result", "result": evil + "2"}),
    )  # fmt: skip
    text += "".join(render_prompt(evil, PLAIN))
    assert "?]0;title??" in text
    assert all(char.isprintable() or char == "\n" for char in text)


def test_colours_on_a_terminal() -> None:
    """Each line ends with the colour that it began with."""
    lines = transcript("claude", read("claude", "shell"), palette=Palette(is_colored=True))
    assert lines.splitlines()[0] == "\x1b[36m* Bash: echo from-the-shell\x1b[0m"


def test_another_job_of_a_warm_process_is_not_shown() -> None:
    """After the result the process opens another session, for a job of its own."""
    init, done = {"type": "system", "subtype": "init"}, {"type": "result", "result": "Done."}
    text = transcript(
        "claude",
        claude({**init, "session_id": "1"}, done, {**init, "session_id": "2"}, said(call("9"))),
    )
    assert text.strip() == "Done."


def test_a_line_that_is_too_long_does_not_hide_its_tool() -> None:
    """opencode has call and result in one line."""
    data = read("opencode", "shell").replace(b'"from-the-shell\\n"', b'"' + b"x" * (1 << 20) + b'"')
    assert transcript("opencode", data).startswith("* bash\n    (too long to keep)\n")
