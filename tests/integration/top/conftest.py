"""The application without a terminal, on fixed readings."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from textual.pilot import Pilot

from ramherd.config.load import Config
from ramherd.top.app import TopApp
from ramherd.top.reading import Reading
from support.top_readings import FixedSource

SETTINGS = Config({}, {}, {})
DEADLINE_S = 20.0


@dataclass
class OpenTop:
    app: TopApp
    pilot: "Pilot[None]"
    source: FixedSource
    # The actions that were called, with the name of their job.
    calls: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def text(self) -> str:
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def press(self, *keys: str) -> str:
        """What is on the screen afterwards."""
        await self.pilot.press(*keys)
        await self.pilot.pause()
        return self.text

    async def await_text(self, wanted: str) -> str:
        return await self.await_(lambda: wanted in self.text, wanted)

    async def await_(self, condition: Callable[[], bool], what: str) -> str:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"no {what!r} in:\n{self.text}"
            await self.pilot.pause(0.02)
        return self.text

    async def show(self, reading: Reading) -> None:
        """As the next second would."""
        self.source.reading = reading
        self.app.show_reading(reading)
        await self.pilot.pause()


@asynccontextmanager
async def open_top(reading: Reading | None = None, size: tuple[int, int] = (80, 24)) -> Any:
    source = FixedSource(reading)
    app = TopApp(source, SETTINGS)
    async with app.run_test(size=size) as pilot:
        top = OpenTop(app, pilot, source)
        await top.await_text("free ")
        await pilot.pause(0.1)  # the heights follow the first rows
        yield top


def drive(test: Callable[[OpenTop], Awaitable[None]], **how: Any) -> None:
    """Runs an async test on an open application."""

    async def run() -> None:
        async with open_top(**how) as top:
            await test(top)

    asyncio.run(run())


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clocks on the screen are the same everywhere."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
