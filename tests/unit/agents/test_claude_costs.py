"""What claude's events and its history say of tokens, and of what they cost."""

import json
from pathlib import Path
from typing import Any

import pytest

from ramherd.agents import claude_history
from ramherd.agents.claude import ClaudeReader
from ramherd.agents.claude_history import parse_messages, read_messages_since
from ramherd.agents.json_lines import LINE_BYTES, Events
from ramherd.agents.progress import (
    Billed,
    Fact,
    ModelCost,
    Progress,
    Spent,
    TokenUsage,
    next_progress,
)

MODEL = "claude-opus-5-5"


def assistant(
    id_: str, *, tokens_in: int = 1000, text: str = "", parent: str | None = None, **usage: Any
) -> dict[str, Any]:
    numbers = {"input_tokens": tokens_in, "output_tokens": 1, **usage}
    content = [{"type": "text", "text": text}] if text else []
    message = {"id": id_, "model": MODEL, "content": content, "usage": numbers}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


def result(since_usd: float, total_usd: float, tokens_in: int, **more: Any) -> dict[str, Any]:
    used = {"inputTokens": tokens_in, "outputTokens": 0, "costUSD": since_usd}
    return {
        "type": "result", "result": "Done.", "total_cost_usd": total_usd, "num_turns": 1,
        "model_usage_since_last_result": {f"{MODEL}[1m]": {**used, **more}},
    }  # fmt: skip


def read(reader: ClaudeReader, *events: dict[str, Any]) -> list[Fact]:
    lines = "".join(json.dumps(event) + "\n" for event in events)
    return Events(reader).feed(lines.encode())


def units(facts: list[Fact]) -> float:
    return sum(fact.units for fact in facts if isinstance(fact, TokenUsage))


def test_the_tokens_of_a_message_are_counted_once() -> None:
    """It comes in several events, one for each part, with the same usage; the output adds up."""
    facts = read(
        ClaudeReader(), assistant("m", text="a" * 400), assistant("m", text="b" * 40),
    )  # fmt: skip
    assert units(facts) == 1000 + 5 * 110
    assert [fact.starts_reply for fact in facts if isinstance(fact, TokenUsage)] == [True, False]


def test_the_cache_has_prices_of_its_own() -> None:
    """To write it costs more than plain input, to read it much less."""
    usage: dict[str, Any] = {
        "cache_creation_input_tokens": 300, "cache_read_input_tokens": 1000,
        "cache_creation": {"ephemeral_1h_input_tokens": 100},
    }  # fmt: skip
    facts = read(ClaudeReader(), assistant("m", tokens_in=10, **usage))
    assert units(facts) == 10 + 1.25 * 200 + 2 * 100 + 0.1 * 1000 + 5


def test_what_claude_code_writes_itself_costs_nothing() -> None:
    """An error of the API, as a message without a model."""
    event = assistant("m")
    event["message"]["model"] = "<synthetic>"
    assert units(read(ClaudeReader(), event)) == 0


def test_a_result_shows_a_price_and_leaves_nothing_unreported() -> None:
    """For the model without the size of its context."""
    reader = ClaudeReader()
    facts = read(reader, assistant("m"), result(0.004, 0.004, 1000))
    assert ModelCost(MODEL, 1000, 0.004) in facts
    assert Billed() in facts
    assert reader.unbilled == ""
    progress = next_progress(Progress(), facts)
    assert (progress.cost_usd, progress.unreported, progress.is_billed) == (0.004, (), True)


def test_the_reply_of_a_subagent_is_not_the_agents_own() -> None:
    """It counts, but says nothing of what the next reply costs."""
    reader = ClaudeReader()
    facts = read(reader, assistant("m", tokens_in=500), assistant("s", parent="tool"))
    progress = next_progress(Progress(), facts)
    assert reader.unbilled == "m"
    assert dict(progress.unreported)[MODEL] == 1510
    own = next_progress(progress, read(reader, assistant("n", tokens_in=200)))
    assert own.reply == (MODEL, 205)


def test_a_stopped_run_is_reported_by_the_next_one() -> None:
    """After TERM claude counts on: the estimate is replaced. After KILL it begins from zero: the
    estimate stays.
    """
    stopped = Progress(estimate_usd=0.17)
    term = read(ClaudeReader(), result(0.01, 0.1746, 1000))
    kill = read(ClaudeReader(), result(0.01, 0.01, 1000))
    after_term, after_kill = (next_progress(stopped, facts) for facts in (term, kill))
    assert (after_term.cost_usd, after_term.estimate_usd) == (0.1746, 0.0)
    assert (after_kill.cost_usd, after_kill.estimate_usd) == (0.01, 0.17)


def test_a_line_too_long_to_keep_has_its_numbers_at_its_ends() -> None:
    """The usage of a huge message, and the cost of a huge result."""
    reader = ClaudeReader()
    message = assistant("m", text="x" * 2 * LINE_BYTES)
    message["message"] = {
        key: message["message"][key] for key in ("id", "model", "content", "usage")
    }
    facts = read(reader, message)
    assert units(facts) == 1000 + 5 * LINE_BYTES / 4
    assert reader.unbilled == "m"
    huge = {"type": "result", "total_cost_usd": 1.5, "num_turns": 1, "result": "x" * 2 * LINE_BYTES}
    facts = read(reader, huge)
    assert Spent(cost_usd=1.5, whole=True) in facts
    assert Billed() in facts


@pytest.mark.parametrize("number", ["nan", "-1", "1e99", "x"])
def test_a_number_that_is_none_costs_nothing(number: str) -> None:
    """Whatever stands at the ends of a long line."""
    facts = list(ClaudeReader().read_long({"num_turns": "1", "total_cost_usd": number}))
    assert Spent(cost_usd=0.0, whole=True) in facts


def entry(id_: str, at: str, output: int, tokens_in: int = 1000) -> str:
    message = {
        "model": MODEL, "id": id_, "type": "message", "role": "assistant", "content": [],
        "usage": {
            "input_tokens": tokens_in, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 100, "output_tokens": output,
            "cache_creation": {"ephemeral_1h_input_tokens": 0},
        },
    }  # fmt: skip
    whole = {"type": "assistant", "message": message, "timestamp": at}
    return json.dumps(whole, separators=(",", ":")) + "\n"


def test_the_history_has_each_message_once_with_its_last_usage() -> None:
    """Entries of other kinds, and half a line, are passed over."""
    text = entry("m", "1", 1) + '{"type":"user"}\n' + entry("m", "1", 300) + entry("n", "2", 5)[:90]
    (message,) = parse_messages(text.encode())
    assert (message.id, message.model, message.tokens_out) == (b"m", MODEL, 300)
    assert message.tokens_in == 1100
    assert message.tokens.units == 1000 + 10 + 1500


def test_the_history_is_read_from_the_first_message_that_is_not_reported(tmp_path: Path) -> None:
    """With those of subagents since then."""
    project = tmp_path / "projects/-home-me"
    (project / "s1/subagents").mkdir(parents=True)
    (project / "s1.jsonl").write_text(entry("a", "1", 1) + entry("b", "2", 2) + entry("c", "4", 3))
    (project / "s1/subagents/agent-x.jsonl").write_text(entry("o", "0", 7) + entry("p", "3", 8))
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    found = read_messages_since("s1", "b", env)
    assert [message.tokens_out for message in found] == [2, 3, 8]
    assert read_messages_since("s1", "unknown", env) == []
    assert read_messages_since("s2", "b", env) == []
    assert read_messages_since("s1", "b", {"HOME": str(tmp_path)}) == []


def test_the_histories_of_many_subagents_are_read_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor reads them while it does nothing else."""
    folder = tmp_path / "projects/-home-me/s1/subagents"
    folder.mkdir(parents=True)
    (folder.parent.parent / "s1.jsonl").write_text(entry("a", "1", 1))
    for name in "xyz":
        (folder / f"agent-{name}.jsonl").write_text(entry(name, "2", 2))
    monkeypatch.setattr(claude_history, "MOST_BYTES", 2 * len(entry("x", "2", 2)))

    found = read_messages_since("s1", "a", {"CLAUDE_CONFIG_DIR": str(tmp_path)})
    assert [message.id for message in found] == [b"a", b"x", b"y"]
