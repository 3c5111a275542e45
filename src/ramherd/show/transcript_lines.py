"""The lines of a transcript: prompts, text of the model, tool calls and their results.

The output of agents reaches a terminal, so control characters are removed.
"""

from collections.abc import Iterator

from ramherd.core.units import format_duration
from ramherd.show.colors import BOLD, CYAN, DIM, RED, YELLOW, Palette
from ramherd.show.event_lines import printable

# Lines shown of a tool's output; each line, and the argument of a call, is cut as well.
OUTPUT_LINES = 5
WIDEST = 200


def clean(line: str) -> str:
    return printable(line.expandtabs(4))


def cut(line: str) -> str:
    return line if len(line) <= WIDEST else line[: WIDEST - 3] + "..."


def render_boundary(text: str, palette: Palette) -> str:
    return palette.paint(f"--- {clean(text)}", DIM)


def render_prompt(text: str, palette: Palette) -> Iterator[str]:
    for line in text.strip().splitlines():
        yield palette.paint(f"> {clean(line)}".rstrip(), BOLD)


def render_call(name: str, argument: str, palette: Palette, *, more: str = "") -> str:
    words = f"* {name}" + (f": {' '.join(argument.split())}" if argument else "")
    return palette.paint(cut(clean(words)), CYAN) + more


def render_output(output: str, lines: int, palette: Palette, *, is_error: bool) -> Iterator[str]:
    """The first lines of a tool's result, and the number of lines left out."""
    shown = output.splitlines()[:OUTPUT_LINES]
    if is_error:
        shown = [f"error: {shown[0]}" if shown else "error", *shown[1:]]
    for line in shown:
        yield palette.paint(f"    {cut(clean(line))}".rstrip(), RED if is_error else DIM)
    if (more := lines - OUTPUT_LINES) > 0:
        yield palette.paint(f"    ... {more} more {'line' if more == 1 else 'lines'}", DIM)


def render_trouble(text: str, palette: Palette, *, wait_s: float = 0.0) -> str:
    wait = f"; next try in {format_duration(wait_s)}" if wait_s else ""
    return palette.paint(f"! {cut(clean(' '.join(text.split())))}{wait}", YELLOW)


def render_failure(text: str, palette: Palette) -> Iterator[str]:
    for line in (f"failed: {text.strip()}" if text else "failed").splitlines():
        yield palette.paint(f"! {clean(line)}", RED)


def render_denial(what: str, palette: Palette) -> str:
    return palette.paint(cut(clean(f"! denied: {' '.join(what.split())}")), RED)


def render_stderr(line: str, palette: Palette) -> str:
    return palette.paint(f"stderr: {clean(line)}".rstrip(), DIM)
