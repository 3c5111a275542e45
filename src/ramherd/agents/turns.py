"""Turns of CLIs that do not name them: from a reply's first sign to the end of its last tool."""

from collections.abc import Iterator

from ramherd.agents.events import TOOLS_KEPT, Fact, ToolEnded, ToolStarted, TurnEnded, TurnStarted


class Turns:
    def __init__(self) -> None:
        self.in_turn = False
        self.open: set[str] = set()

    def start(self) -> Iterator[Fact]:
        if not self.in_turn:
            self.in_turn = True
            yield TurnStarted()

    def start_tool(self, tool: str, name: str) -> Iterator[Fact]:
        yield from self.start()
        if len(self.open) < TOOLS_KEPT:
            self.open.add(tool)
            yield ToolStarted(tool, name)

    def end_tool(self, tool: str) -> Iterator[Fact]:
        if tool in self.open:
            self.open.discard(tool)
            yield ToolEnded(tool)
            if not self.open:
                self.in_turn = False
                yield TurnEnded()
