"""Memory over time, one panel for each tool above the next, all on the same axes.

A column is the highest sample within it, so that no peak is lost.
"""

from collections.abc import Iterator, Sequence
from html import escape

from bench.replay.outcome import Outcome

WIDTH, PANEL, GAP, LEFT, TOP = 900, 90, 26, 70, 10
FILL, LIMIT, KILL = "#4e79a7", "#222222", "#e15759"


def render_picture(outcomes: Sequence[Outcome], budget_bytes: int) -> str:
    longest_s = max(outcome.makespan_s for outcome in outcomes)
    # A tenth above the budget, for what exceeds it.
    most_bytes = max(1.1 * budget_bytes, *(outcome.peak_bytes for outcome in outcomes))
    height = TOP + len(outcomes) * (PANEL + GAP) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 10}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, outcome in enumerate(outcomes):
        bottom = TOP + GAP + PANEL + number * (PANEL + GAP)
        parts += render_panel(outcome, bottom, longest_s, most_bytes, budget_bytes)
    parts.append(text(LEFT, height - 6, "0 s", "middle"))
    parts.append(text(LEFT + WIDTH, height - 6, f"{longest_s:.0f} s", "end"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def render_panel(
    outcome: Outcome, bottom: int, longest_s: float, most_bytes: float, budget_bytes: int
) -> Iterator[str]:
    high = round(budget_bytes / most_bytes * PANEL)
    yield text(LEFT, bottom - PANEL - 6, title(outcome), "start")
    yield f'<path fill="{FILL}" d="{area(outcome, bottom, longest_s, most_bytes)}"/>'
    yield f'<path stroke="{LIMIT}" stroke-dasharray="4 3" d="M{LEFT} {bottom - high}h{WIDTH}"/>'
    yield f'<path stroke="{LIMIT}" d="M{LEFT} {bottom}h{WIDTH}"/>'
    yield text(LEFT - 6, bottom - high + 4, f"{budget_bytes / 1e9:.3g} GB", "end")
    columns = sorted({round(at_s / longest_s * WIDTH) for at_s in outcome.kill_times_s})
    if columns:
        ticks = "".join(f"M{LEFT + x} {bottom - PANEL}v8" for x in columns)
        yield f'<path stroke="{KILL}" stroke-width="2" d="{ticks}"/>'


def title(outcome: Outcome) -> str:
    kills = f"{outcome.oom_kills} OOM kills"
    end = "stopped after" if outcome.was_stopped else "done in"
    return f"{outcome.tool}: {end} {outcome.makespan_s:.0f} s, {kills}"


def area(outcome: Outcome, bottom: int, longest_s: float, most_bytes: float) -> str:
    columns = make_columns(outcome.samples, longest_s, WIDTH)
    points = "".join(f"V{bottom - size / most_bytes * PANEL:.0f}h1" for size in columns)
    return f"M{LEFT} {bottom}{points}V{bottom}z"


def make_columns(samples: Sequence[tuple[float, int]], longest_s: float, width: int) -> list[int]:
    """As far as the samples go; a column without one is as the one before."""
    columns: list[int] = []
    for at_s, size in samples:
        column = min(int(at_s / longest_s * width), width - 1)
        while len(columns) < column:
            columns.append(columns[-1] if columns else 0)
        if len(columns) == column:
            columns.append(size)
        columns[column] = max(columns[column], size)
    return columns


def text(x: int, y: int, words: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
