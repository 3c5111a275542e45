"""`ramherd history`: the learned sizes of each class of runs, and how often they were right."""

import argparse
import json
from contextlib import closing
from typing import Any

from ramherd.cli.main import read_columns
from ramherd.cli.store_reader import open_to_read
from ramherd.core.units import format_duration, format_size
from ramherd.decide.governor.classes import estimate
from ramherd.show.job_table import shorten
from ramherd.store.classes import Known, read_classes

HEAD = ("class", "runs", "mean", "spread", "peak p90", "duration", "right")
LEAST_NAME = 12


DESCRIPTION = """\
Memory use learned from earlier runs. `right` counts runs whose mean was within
two spreads of the estimate made before them."""


EPILOG = """\
examples:
  ramherd history           one line for each agent, project and label
  ramherd history --json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.description = DESCRIPTION
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(verb=history)


def history(options: argparse.Namespace) -> int:
    with closing(open_to_read()) as store:
        known = list(read_classes(store))
    if options.json:
        print(json.dumps({"classes": [as_json(one) for one in known]}))
    elif not known:
        print("nothing yet: priors are used until a run has ended")
    else:
        print_table([HEAD, *(row(one) for one in known)], read_columns())
    return 0


def as_json(known: Known) -> dict[str, Any]:
    now = estimate(known.record)
    coverage = known.record.coverage
    return {
        **known.key._asdict(),
        "runs": known.record.runs,
        "base_bytes": now.base_bytes,
        "sd_bytes": now.sd_bytes,
        "peak_bytes": now.peak_bytes,
        "duration_s": round(now.duration_s, 1),
        "coverage": None if coverage is None else round(coverage, 4),
        "updated_s": known.updated_s,
    }


def row(known: Known) -> tuple[str, ...]:
    now, coverage = estimate(known.record), known.record.coverage
    return (
        " / ".join(part or "-" for part in known.key),
        str(known.record.runs),
        format_size(now.base_bytes),
        format_size(now.sd_bytes),
        format_size(now.peak_bytes),
        format_duration(now.duration_s),
        "-" if coverage is None else f"{coverage:.0%}",
    )


def print_table(rows: list[tuple[str, ...]], columns: int) -> None:
    """The names of classes are cut where the table would be wider than the terminal."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    widths[0] = min(widths[0], max(columns - sum(widths[1:]) - 2 * len(widths[1:]), LEAST_NAME))
    for line in rows:
        cells = [shorten(line[0], widths[0]).ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells))
