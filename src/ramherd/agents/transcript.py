"""The output of one run of an agent as readable text: the facts of its events in order.

`ramherd show` has turns, tokens and costs; `ramherd logs --raw` has the model's thoughts.
"""

from collections.abc import Iterator

from ramherd.agents import find_agent
from ramherd.agents.json_lines import Events
from ramherd.agents.progress import (
    CliWarning,
    Denied,
    Fact,
    Failure,
    ModelText,
    Overload,
    Result,
    Retry,
    SessionOpened,
    ToolEnded,
    ToolStarted,
)
from ramherd.show.colors import Palette
from ramherd.show.transcript_lines import (
    clean,
    render_call,
    render_denial,
    render_failure,
    render_output,
    render_trouble,
)

INDENT = "  "


class Transcript:
    """Turns the bytes of a run's stdout into lines; call `close` at its end."""

    def __init__(self, agent: str, palette: Palette) -> None:
        self._events = Events(find_agent(agent).reader())
        self._palette = palette
        self._session = ""
        # A warm process that has answered continues with another job.
        self._has_result = self._is_over = False
        # Text whose line is not complete yet.
        self._open_text = ""
        self._is_in_text = False
        self._last_text = self._last_failure = ""
        # Reported with the call, and by some CLIs again at the end.
        self._denied: list[Denied] = []
        self._tools: dict[str, ToolStarted] = {}
        # The tool call in the last line.
        self._last_call = ""

    def feed(self, data: bytes) -> Iterator[str]:
        for fact in self._events.feed(data):
            yield from self._render(fact)

    def close(self) -> Iterator[str]:
        for fact in self._events.close():
            yield from self._render(fact)
        yield from self._end_text()

    def _render(self, fact: Fact) -> Iterator[str]:
        if isinstance(fact, SessionOpened):
            self._is_over = self._has_result and fact.id != self._session
            self._session = self._session or fact.id
        if self._is_over:
            return
        if isinstance(fact, ModelText):
            yield from self._render_text(fact)
        elif lines := list(self._render_step(fact)):
            yield from self._end_text()
            yield from lines

    def _render_text(self, said: ModelText) -> Iterator[str]:
        """Joins parts of a text into lines; a blank line precedes each text."""
        indent = INDENT * said.by_subagent
        if not self._is_in_text:
            yield ""
            self._is_in_text, self._last_text = True, ""
        self._last_call = ""
        self._last_text += said.text
        *lines, self._open_text = (self._open_text + said.text).split("\n")
        yield from ((indent + clean(line)).rstrip() for line in lines)
        if not said.is_part:
            self._open_text = indent + self._open_text
            yield from self._end_text()

    def _end_text(self) -> Iterator[str]:
        if self._is_in_text:
            self._is_in_text = False
            if self._open_text:
                yield clean(self._open_text).rstrip()
                self._open_text = ""
            yield ""

    def _render_step(self, fact: Fact) -> Iterator[str]:
        match fact:
            case ToolStarted(id=tool, by_subagent=by_subagent):
                self._tools[tool], self._last_call = fact, tool
                yield INDENT * by_subagent + render_call(fact.name, fact.argument, self._palette)
            case ToolEnded():
                yield from self._render_ended(fact)
            case Denied(tool, what) if fact not in self._denied:
                self._denied.append(fact)
                yield render_denial(f"{tool}: {what}" if what else tool, self._palette)
            case CliWarning() | Overload() | Retry():
                yield from self._render_trouble(fact)
            case Failure(text):
                # Some CLIs report a failure twice, or print it as the model's text.
                if text != self._last_failure:
                    known = text.strip() == self._last_text.strip()
                    yield from render_failure("" if known else text, self._palette)
                self._last_failure = text
            case Result(text):
                self._has_result = True
                # Usually a repeat of the last text.
                if text.strip() != self._last_text.strip():
                    yield from ("", *map(clean, text.splitlines()), "")

    def _render_trouble(self, fact: CliWarning | Overload | Retry) -> Iterator[str]:
        match fact:
            case CliWarning(text):
                yield render_trouble(text, self._palette)
            case Overload(text, wait_s) if text != self._last_failure:
                overload = f"the API is overloaded: {text}"
                yield render_trouble(overload, self._palette, wait_s=wait_s)
            case Retry(text, wait_s):
                again = f"the agent tries again: {text}"
                yield render_trouble(again, self._palette, wait_s=wait_s)

    def _render_ended(self, ended: ToolEnded) -> Iterator[str]:
        """Below its call; if several ran at once, the tool is named again."""
        tool = self._tools.pop(ended.id, None)
        indent = INDENT if tool is not None and tool.by_subagent else ""
        lines = list(
            render_output(ended.output, ended.lines, self._palette, is_error=ended.is_error)
        )
        if lines and tool is not None and ended.id != self._last_call:
            more = " (its result)"
            yield indent + render_call(tool.name, tool.argument, self._palette, more=more)
        self._last_call = ""
        yield from (indent + line for line in lines)
