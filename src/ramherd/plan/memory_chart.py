"""Expected memory over time, its band and the budget, as a chart for a terminal (plotext)."""

import plotext

from ramherd.core.units import GIB, format_size
from ramherd.plan.make_plan import Plan

HEIGHT = 16
MOST_WIDTH = 110
# The legend is at the top left, above all lines.
LEGEND_ROOM = 1.5


def render_chart(plan: Plan, width: int, *, is_colored: bool) -> str:
    one = plan.hosts[0]
    minutes = [at * one.forecast.step_s / 60 for at in range(len(one.forecast.band))]
    plotext.clear_figure()
    plotext.plot_size(min(width, MOST_WIDTH), HEIGHT)
    plotext.title("memory of all agents on one host, GiB over minutes")
    alone = plan.alone
    plotext.plot(
        [at * alone.step_s / 60 for at in range(len(alone.median_by_step))],
        [size / GIB for size in alone.median_by_step],
        label="all at once, no limit",
    )
    for column, label in ((0, "p10"), (2, "p90"), (1, "ramherd, median")):
        sizes = [point[column] / GIB for point in one.forecast.band]
        plotext.plot(minutes, sizes, label=label)
    budget = one.host.budget_bytes
    highest = max(budget, *alone.median_by_step, *(point[2] for point in one.forecast.band))
    plotext.ylim(0, highest / GIB * LEGEND_ROOM)
    plotext.plot([0, max(minutes, default=1)], [budget / GIB] * 2, label=budget_label(budget))
    chart = str(plotext.build()).rstrip("\n")
    return chart if is_colored else str(plotext.uncolorize(chart))


def budget_label(budget_bytes: int) -> str:
    return f"budget {format_size(budget_bytes)}"
