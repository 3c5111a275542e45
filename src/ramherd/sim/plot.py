"""Memory over time as a picture: one band for each run, and the budget above them.

SVG is text and needs no library. PNG is drawn here too, with zlib, for places that cannot show SVG.
"""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

from ramherd.core.errors import UsageError
from ramherd.core.units import format_duration, format_size

WIDTH, HEIGHT, LEFT, BOTTOM = 1000, 400, 70, 30
# Neighbours differ; a run keeps its colour for its whole life.
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")
BUDGET = "#222222"

Band = tuple[str, int, int]


def write_plot(path: Path, seconds: Sequence[dict[str, int]], budget_bytes: int) -> None:
    columns = make_columns(seconds, budget_bytes)
    if path.suffix == ".svg":
        path.write_text(render_svg(columns, len(seconds), budget_bytes))
    elif path.suffix == ".png":
        path.write_bytes(render_png(columns))
    else:
        raise UsageError(f"cannot draw {path.name}", hint="end its name with .svg or .png")


def make_columns(seconds: Sequence[dict[str, int]], budget_bytes: int) -> list[list[Band]]:
    """The bands (colour, bottom, top) of each column of the picture, in pixels from below. The
    highest second represents all seconds of its column, so that no peak is lost.
    """
    if not seconds:
        return []
    number = min(WIDTH, len(seconds))
    edges = [n * len(seconds) // number for n in range(number + 1)]
    groups = [seconds[edges[n] : edges[n + 1]] for n in range(number)]
    return [bands(max(group, key=total_bytes), budget_bytes) for group in groups]


def total_bytes(used: dict[str, int]) -> int:
    return sum(used.values())


def bands(used: dict[str, int], budget_bytes: int) -> list[Band]:
    stack: list[Band] = []
    level = 0
    for run, size in used.items():
        bottom, level = level, level + size
        stack.append((colour_of(run), pixels(bottom, budget_bytes), pixels(level, budget_bytes)))
    return stack


def colour_of(run: str) -> str:
    return COLOURS[zlib.crc32(run.encode()) % len(COLOURS)]


def pixels(size: int, budget_bytes: int) -> int:
    """The budget is at nine tenths of the height, so that memory above it is visible."""
    return min(round(size / budget_bytes * 0.9 * HEIGHT), HEIGHT)


def render_svg(columns: Sequence[Sequence[Band]], length_s: int, budget_bytes: int) -> str:
    step = WIDTH / max(len(columns), 1)
    line = HEIGHT - pixels(budget_bytes, budget_bytes)
    middle = length_s / 2
    texts = (
        (LEFT - 6, line + 4, "end", format_size(budget_bytes)),
        (LEFT - 6, HEIGHT + 4, "end", "0"),
        (LEFT, HEIGHT + 18, "middle", "0"),
        (LEFT + WIDTH // 2, HEIGHT + 18, "middle", format_duration(middle)),
        (LEFT + WIDTH, HEIGHT + 18, "end", format_duration(length_s)),
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 10}" '
        f'height="{HEIGHT + BOTTOM}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        *(f'<path fill="{colour}" d="{d}"/>' for colour, d in paths(columns, step).items()),
        f'<path stroke="{BUDGET}" stroke-width="1.5" d="M{LEFT} {line}h{WIDTH}"/>',
        *(
            f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'
            for x, y, anchor, text in texts
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def paths(columns: Sequence[Sequence[Band]], step: float) -> dict[str, str]:
    """One path for each colour: a picture of 400 runs stays below a megabyte."""
    pieces: dict[str, list[str]] = {}
    for number, stack in enumerate(columns):
        for colour, bottom, top in stack:
            if top > bottom:
                pieces.setdefault(colour, []).append(
                    f"M{LEFT + number * step:.5g} {HEIGHT - top}h{step:.4g}v{top - bottom}"
                    f"h-{step:.4g}z"
                )
    return {colour: "".join(parts) for colour, parts in pieces.items()}


def render_png(columns: Sequence[Sequence[Band]]) -> bytes:
    """Without text: the budget is the dark line."""
    rows = [bytearray(b"\xff" * 3 * WIDTH) for _ in range(HEIGHT)]
    for x in range(WIDTH):
        stack = columns[x * len(columns) // WIDTH] if columns else []
        for colour, bottom, top in stack:
            pixel = bytes.fromhex(colour[1:])
            for y in range(bottom, top):
                rows[HEIGHT - 1 - y][3 * x : 3 * x + 3] = pixel
    rows[HEIGHT - pixels(1, 1)] = bytearray(bytes.fromhex(BUDGET[1:]) * WIDTH)
    raw = b"".join(b"\0" + bytes(row) for row in rows)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(kind, data)
        for kind, data in ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    )


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
