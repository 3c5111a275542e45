"""A plan as one page to share: charts as inline SVG, no script and no request, light and dark."""

from collections.abc import Iterable, Sequence
from html import escape

from ramherd.core.units import GIB, format_duration, format_size
from ramherd.plan.advice import advise
from ramherd.plan.arithmetic import explain
from ramherd.plan.make_plan import Plan
from ramherd.plan.plan_text import answer, bounds, operations, raises, summary

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 860, 300, 64, 34, 16
MOST_POINTS = 240
STYLE = """
:root { color-scheme: light dark; --bg: #fdfdfc; --ink: #1d2330; --dim: #667085; --line: #d8dce3;
  --band: #b9d3f0; --mid: #1f5fa8; --alone: #c2410c; --budget: #15803d; --code: #f1f3f6; }
@media (prefers-color-scheme: dark) { :root { --bg: #14171c; --ink: #e6e9ef; --dim: #98a2b3;
  --line: #343b46; --band: #274767; --mid: #7ab8ff; --alone: #fb923c; --budget: #4ade80;
  --code: #1f242c; } }
body { background: var(--bg); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  max-width: 920px; margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.45rem; line-height: 1.35; } h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--dim); font: 12px system-ui, sans-serif; }
table { border-collapse: collapse; width: 100%; }
td { border-top: 1px solid var(--line); padding: .35rem .8rem .35rem 0; vertical-align: top; }
td:first-child { white-space: nowrap; color: var(--dim); }
code { background: var(--code); padding: .1rem .35rem; border-radius: 4px; font-size: .88em;
  overflow-wrap: anywhere; }
.key { color: var(--dim); font-size: .9rem; } .key b { font-weight: 600; }
footer { color: var(--dim); font-size: .85rem; margin-top: 2.5rem; }
@media (max-width: 640px) { td:first-child { white-space: normal; } }
"""


def render_page(plan: Plan) -> str:
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>ramherd plan: {plan.agents} agents</title>",
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{escape(answer(plan))}</h1>",
        render_memory(plan),
        table(summary(plan)),
        "<h2>What binds first</h2>", table(bounds(plan)),
        *(["<h2>What would raise it</h2>", render_bars(plan), table(raises(plan))]
          if plan.raises else []),
        "<h2>Memory of one step</h2>", table(operations(plan)),
        "<h2>The arithmetic</h2>",
        table((line.what, f"{line.computed}; {line.means}") for line in explain(plan)),
        "<h2>What to do</h2>",
        "".join(f"<p><code>{escape(one.command)}</code><br>{escape(one.why)}</p>"
                for one in advise(plan)),
        "<footer>Made by <code>ramherd plan --html</code>. Simulated, not promised: the spread of"
        " the draws is shown above.</footer>",
        "</body></html>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def table(rows: Iterable[tuple[str, str]]) -> str:
    cells = (f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{''.join(cells)}</table>"


def render_memory(plan: Plan) -> str:
    """The same chart as on the terminal."""
    one, alone = plan.hosts[0], plan.alone
    found = one.forecast
    seconds = max(len(found.band) * found.step_s, len(alone.median_by_step) * alone.step_s, 1)
    highest = max(one.host.budget_bytes, *alone.median_by_step, *(point[2] for point in found.band))
    highest *= 1.08

    def place(at_s: float, size: float) -> str:
        x = LEFT + at_s / seconds * (WIDTH - LEFT)
        return f"{x:.1f},{TOP + (1 - size / highest) * HEIGHT:.1f}"

    every = max(len(found.band) // MOST_POINTS, 1)
    band = [(at * found.step_s, point) for at, point in enumerate(found.band)][::every]
    upper = [place(at_s, point[2]) for at_s, point in band]
    lower = [place(at_s, point[0]) for at_s, point in reversed(band)]
    middle = " ".join(place(at_s, point[1]) for at_s, point in band)
    alone_line = " ".join(
        place(at * alone.step_s, size) for at, size in enumerate(alone.median_by_step)
    )
    start, end = place(0, one.host.budget_bytes), place(seconds, one.host.budget_bytes)
    return "\n".join(
        (
            f'<svg viewBox="0 0 {WIDTH + 8} {TOP + HEIGHT + BOTTOM}" role="img"'
            ' aria-label="memory over time">',
            *axes(highest, seconds),
            f'<polygon fill="var(--band)" points="{" ".join(upper + lower)}"/>',
            polyline(alone_line, "alone", ' stroke-dasharray="2 4"'),
            polyline(middle, "mid"),
            polyline(f"{start} {end}", "budget", ' stroke-dasharray="8 4"'),
            "</svg>",
            '<p class="key"><b style="color:var(--mid)">blue</b> ramherd, median and p10 to p90 of'
            f' the draws; <b style="color:var(--budget)">green</b> budget'
            f' {format_size(one.host.budget_bytes)}; <b style="color:var(--alone)">orange</b> all'
            " at once without a limit, median</p>",
        )
    )


def polyline(points: str, color: str, more: str = "") -> str:
    return (
        f'<polyline fill="none" stroke="var(--{color})" stroke-width="2" points="{points}"{more}/>'
    )


def axes(highest: float, seconds: float) -> Iterable[str]:
    step = max(round(highest / GIB / 4), 1)
    for gib in range(0, int(highest / GIB) + 1, step):
        y = TOP + (1 - gib * GIB / highest) * HEIGHT
        yield f'<path stroke="var(--line)" d="M{LEFT} {y:.1f}H{WIDTH}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{gib} GiB</text>'
    for quarter in range(5):
        x = LEFT + quarter / 4 * (WIDTH - LEFT)
        text = format_duration(seconds * quarter / 4) if quarter else "0"
        anchor = "end" if quarter == 4 else "middle"
        y = TOP + HEIGHT + 20
        yield f'<text x="{x:.0f}" y="{y}" text-anchor="{anchor}">{text}</text>'


def render_bars(plan: Plan) -> str:
    """Agents at once: now, and with each change."""
    rows = [("now", plan.at_once), *((one.what, one.at_once) for one in plan.raises)]
    most = max(number for _what, number in rows)
    return bars(rows, most)


def bars(rows: Sequence[tuple[str, float]], most: float) -> str:
    lines: list[str] = []
    for at, (what, number) in enumerate(rows):
        y = at * 30
        width = number / most * (WIDTH - 400)
        color = "mid" if at else "budget"
        lines += [
            f'<text x="330" y="{y + 18}" text-anchor="end">{escape(what)}</text>',
            f'<rect x="340" y="{y + 4}" width="{width:.1f}" height="20" rx="3"'
            f' fill="var(--{color})"/>',
            f'<text x="{348 + width:.0f}" y="{y + 18}">{number:.0f}</text>',
        ]
    height = len(rows) * 30
    view = f'viewBox="0 0 {WIDTH + 8} {height}" role="img" aria-label="agents at once"'
    return f"<svg {view}>{''.join(lines)}</svg>"
