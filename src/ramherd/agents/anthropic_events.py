"""Events that carry complete messages of a model: those of claude, which qwen imitates."""

from collections.abc import Iterator, Mapping
from typing import Any

from ramherd.agents.denials import deny_call
from ramherd.agents.json_lines import count, table, tables, text, word
from ramherd.agents.progress import (
    TOO_LONG,
    TOOLS_KEPT,
    Denied,
    Fact,
    Failure,
    ModelText,
    Result,
    SessionOpened,
    Spent,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    clip,
    failures,
    tool_ended,
)
from ramherd.agents.tool_text import content_text, main_argument

API_ERROR = "[API Error:"
# A message comes in several events, with events of subagents in between.
MESSAGES_KEPT = 64


class MessagesReader:
    # The suffix for any arguments in a rule that allows a command.
    any_arguments = ""

    def __init__(self) -> None:
        self.session = ""
        self.messages: list[str] = []
        # Tools in use, each with the fact to report if its call is refused.
        self.open: dict[str, Denied] = {}
        # Refused calls that are reported already: the result lists them again.
        self.denied: set[str] = set()
        self.in_turn = False
        # Since the last result, counted from messages. Their output counts are sent too early.
        self.tokens_in = 0
        self.tokens_out = 0

    def read(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        match text(event, "type"):
            case "system":
                yield from self.read_system(event)
            case "assistant":
                yield from self.read_assistant(event)
            case "user":
                yield from self.end_tools(
                    tool_ended(
                        word(part, "tool_use_id"), content_text(part),
                        is_error=part.get("is_error") is True,
                    )
                    for part in tables(event, "message", "content")
                )  # fmt: skip
            case "result":
                yield from self.read_result(event)

    def read_long(self, found: Mapping[str, str]) -> Iterator[Fact]:
        match found.get("type"):
            case "user":
                ended = ToolEnded(found.get("tool_use_id", ""), TOO_LONG, 1)
                yield from self.end_tools(iter([ended]))
            case "assistant":
                # The first id is the message's; the tool of the call is not known.
                by_subagent = bool(found.get("parent_tool_use_id"))
                if self.is_new(found.get("id", "")) and not by_subagent:
                    yield from self.start_turn()
                yield ModelText(TOO_LONG, by_subagent=by_subagent)
            case _ if "num_turns" in found:
                yield Failure(TOO_LONG) if found.get("is_error") == "true" else Result(TOO_LONG)

    def read_system(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        session = word(event, "session_id")
        if text(event, "subtype") == "init" and session and session != self.session:
            self.session = session
            yield SessionOpened(session)

    def read_assistant(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        message = table(event, "message")
        if self.is_new(word(message, "id")):
            yield from self.count_tokens(message)
            if not word(event, "parent_tool_use_id") and not is_error_message(event):
                yield from self.start_turn()
        by_subagent = bool(word(event, "parent_tool_use_id"))
        for part in tables(message, "content"):
            match text(part, "type"):
                case "text" if said := text(part, "text").strip():
                    yield ModelText(said, by_subagent=by_subagent)
                case "tool_use":
                    about = main_argument(table(part, "input"))
                    tool = ToolStarted(word(part, "id"), word(part, "name"), about, by_subagent)
                    call = deny_call(tool.name, table(part, "input"), self.any_arguments)
                    yield from self.start_tool(tool, call)

    def start_turn(self) -> Iterator[Fact]:
        self.in_turn = True
        yield TurnStarted()

    def is_new(self, message: str) -> bool:
        if message in self.messages:
            return False
        self.messages = [*self.messages[1 - MESSAGES_KEPT :], message]
        return True

    def count_tokens(self, message: Mapping[str, Any]) -> Iterator[Fact]:
        spent = Spent(
            tokens_read(table(message, "usage")), count(message, "usage", "output_tokens")
        )
        self.tokens_in += spent.tokens_in
        self.tokens_out += spent.tokens_out
        yield spent

    def start_tool(self, tool: ToolStarted, denied: Denied) -> Iterator[Fact]:
        if len(self.open) < TOOLS_KEPT:
            self.open[tool.id] = denied
            yield tool

    def end_tools(self, tools: Iterator[ToolEnded]) -> Iterator[Fact]:
        for tool in tools:
            if self.open.pop(tool.id, None) is not None:
                yield tool
        if self.in_turn and not self.open:
            self.in_turn = False
            yield TurnEnded()

    def read_result(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        yield from self.read_usage(event)
        yield from self.read_denials(event)
        yield from self.end_tools(map(ToolEnded, sorted(self.open)))
        reply = text(event, "result")
        if event.get("is_error") is True or self.is_error(reply):
            yield from failures(reply or self.problem(event))
        else:
            yield Result(clip(reply))

    def read_denials(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        for denial in tables(event, "permission_denials")[:TOOLS_KEPT]:
            if word(denial, "tool_use_id") in self.denied:
                continue
            args = table(denial, "tool_input")
            yield deny_call(word(denial, "tool_name"), args, self.any_arguments)
        self.denied.clear()

    def is_error(self, reply: str) -> bool:  # noqa: ARG002 - some CLIs report errors as a reply
        return False

    def problem(self, event: Mapping[str, Any]) -> str:
        errors = event.get("errors")
        listed = errors if isinstance(errors, list) else []
        listed_errors = "; ".join(error for error in listed if isinstance(error, str))
        return listed_errors or text(event, "error", "message") or text(event, "subtype")

    def read_usage(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        """The result has better counts than its messages."""
        usage = table(event, "usage")
        yield from self.correct(tokens_read(usage), count(usage, "output_tokens"))

    def correct(self, tokens_in: int, tokens_out: int) -> Iterator[Fact]:
        more = Spent(max(tokens_in - self.tokens_in, 0), max(tokens_out - self.tokens_out, 0))
        self.tokens_in = self.tokens_out = 0
        if more != Spent():
            yield more


def is_error_message(event: Mapping[str, Any]) -> bool:
    """claude and qwen also report an error of the API as a message of their own."""
    first = next(iter(tables(event, "message", "content")), {})
    synthetic = text(event, "message", "model") == "<synthetic>"
    return synthetic or text(first, "text").startswith(API_ERROR)


def tokens_read(usage: Mapping[str, Any]) -> int:
    """All input tokens, cached or not."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(count(usage, name) for name in names)
