"""The fake Claude Code: it runs the commands of its model, and continues a session."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from llm import LLM
from ramherd.sim import claude_events


def ask(llm: LLM, sessions: Path, prompt: str, *options: str) -> list[dict[str, Any]]:
    env = {
        **os.environ, "ANTHROPIC_BASE_URL": llm.url, "FAKE_CLAUDE_SESSIONS": str(sessions),
        "FAKE_CLAUDE_BYTES": "1000000",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-S", "-I", claude_events.__file__, *options], env=env, input=prompt,
        text=True, capture_output=True, check=True,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_command_of_the_model_is_run_and_its_output_reported(tmp_path: Path) -> None:
    """The events are those of claude: the call, its result, the result of the whole."""
    with LLM() as llm:
        events = ask(llm, tmp_path, "do it [script shell]", "--session-id", "s-7")

    assert [event["type"] for event in events] == ["system", "assistant", "user", "assistant",
                                                   "result"]  # fmt: skip
    call, result = events[1]["message"]["content"][-1], events[2]["message"]["content"][0]
    assert (result["tool_use_id"], result["content"]) == (call["id"], "from-the-shell\n")
    assert events[-1]["result"] == "The shell said it."


def test_a_session_continues_after_the_last_answered_call(tmp_path: Path) -> None:
    """A command that fails says so to the model; a resumed session does not repeat it."""
    script = [{"shell": "exit 3"}, {"say": "It failed."}, {"say": "Went on."}]
    with LLM({"fails": script}) as llm:
        first = ask(llm, tmp_path, "do it [script fails]", "--session-id", "s-7")
        talk = json.loads((tmp_path / "s-7.json").read_text())
        again = ask(llm, tmp_path, "go on", "--resume", "s-7")

    result = first[2]["message"]["content"][0]
    assert (result["content"], result["is_error"]) == ("Exit code 3", True)
    assert [message["role"] for message in talk] == ["user", "assistant", "user"]
    assert [event["type"] for event in again] == ["system", "assistant", "result"]
    assert again[-1]["result"] == "It failed."
