"""Events: what was decided and why, the newest first."""

import time
from functools import lru_cache

from ramherd.core.reasons import reason_from_text
from ramherd.show.colors import GREEN, RED, WORD_COLORS, YELLOW
from ramherd.show.event_lines import WORDS, render_cause
from ramherd.store.recent_jobs import NamedEvent
from ramherd.top.cells import Cell, Column, TableData, TableRow, Tone, make_cell
from ramherd.top.panels.job_cells import JOB_KEY
from ramherd.top.reading import Reading

COLUMNS = (
    Column("TIME", 8),
    Column("WHAT", 9),
    Column("NAME", 20),
    Column("WHY", rank=0),
)
# `done`, `failed` and `again` follow at once, with the same reason.
LEFT_OUT = ("run_ended",)
TONES = {GREEN: Tone.GOOD, RED: Tone.BAD, YELLOW: Tone.WARN}


def make_event_table(reading: Reading) -> TableData:
    shown = [event for event in reversed(reading.events) if event.kind not in LEFT_OUT]
    rows = tuple(map(make_row, shown))
    return TableData(COLUMNS, rows, empty="no event is stored")


# An event never changes: its row is made once, not every second.
@lru_cache(maxsize=512)
def make_row(event: NamedEvent) -> TableRow:
    word = WORDS.get(event.kind, event.kind)
    clock = time.strftime("%H:%M:%S", time.localtime(event.at_s))
    cells = (
        Cell(clock, Tone.DIM, event.seq),
        Cell(word, TONES.get(WORD_COLORS.get(word, ""), Tone.PLAIN), word),
        make_cell(event.name or "all runs", Tone.STRONG),
        make_cell(render_cause(event.kind, reason_from_text(event.reason))),
    )
    key = f"{JOB_KEY}{event.job}:{event.seq}" if event.job else f"event:{event.seq}"
    return TableRow(key, cells)
