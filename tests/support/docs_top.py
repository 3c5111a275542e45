"""docs/top-*.svg: pictures of `ramherd top` on fixed values. `make screens` writes them; a test
compares them with the application.
"""

import asyncio
import os
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

from textual.pilot import Pilot

from ramherd.config.load import Config
from ramherd.top.app import TopApp
from support.top_readings import FixedSource

DOCS = Path(__file__).parents[2] / "docs"
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
UNIQUE = re.compile(r"terminal-\d+")


class Picture(NamedTuple):
    name: str
    size: tuple[int, int]
    keys: tuple[str, ...] = ()


PICTURES = (
    Picture("top-small", (80, 24)),
    Picture("top-large", (160, 48)),
    Picture("top-reap", (80, 24), ("8", "down", "x")),
)


def render(picture: Picture) -> str:
    """Without fonts from elsewhere: a reader has one of a fixed width."""
    text = FONT.sub("", asyncio.run(draw(picture)))
    text = UNIQUE.sub("top", text).replace("Fira Code", "ui-monospace")
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


async def settle_screen(pilot: "Pilot[Any]") -> None:
    """Until three frames are the same: a busy machine may draw none between two of them. Each shows
    the reading again, as the next second would: a picture never depends on when that began.
    """
    app, frames = pilot.app, list[str]()
    assert isinstance(app, TopApp)
    while app.reading is None:
        await pilot.pause(0.02)
    while len(frames) < 3 or len(set(frames[-3:])) > 1:
        app.show_reading(app.reading)
        await pilot.pause(0.1)
        frames.append(app.export_screenshot())


async def draw(picture: Picture) -> str:
    app = TopApp(FixedSource(), Config({}, {}, {}))
    async with app.run_test(size=picture.size) as pilot:
        await settle_screen(pilot)
        await pilot.press(*picture.keys)
        await settle_screen(pilot)
        return app.export_screenshot(title="ramherd top")


def main() -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()
    for picture in PICTURES:
        (DOCS / f"{picture.name}.svg").write_text(render(picture))


if __name__ == "__main__":
    main()
