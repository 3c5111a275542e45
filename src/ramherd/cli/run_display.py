"""The output of `ramherd run` while a herd runs: its own lines, and the output of commands.

If the output of commands is shown, standard output has nothing else, and our lines are on standard
error. Agents are not shown here: their answers come at the end.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, TextIO

from ramherd.core.errors import UsageError
from ramherd.core.model import Event
from ramherd.show.colors import Palette, is_colored
from ramherd.show.event_lines import CHANGES, LASTING, LineShow
from ramherd.show.live_display import LiveShow
from ramherd.show.tty import is_drawable, is_pipe
from ramherd.show.view import View

if TYPE_CHECKING:
    from ramherd.show.job_output import JobOutput, Sink

BEHIND_EVERY_S = 0.05


def add_output_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    tag = "start each line of output with the name of its job (on a terminal)"
    add("--tag", action=argparse.BooleanOptionalAction, help=tag)
    order = "show what commands print in the order of the jobs"
    add("-k", "--keep-order", action="store_true", help=order)
    add("-q", "--quiet", action="store_true", help="do not show what commands print")


def add_verbose(parser: argparse.ArgumentParser) -> None:
    what = "show every decision, and at the end what ramherd itself took"
    parser.add_argument("-v", "--verbose", action="store_true", help=what)


def check_output_options(options: argparse.Namespace) -> None:
    given = {"--tag": options.tag, "--keep-order": options.keep_order}
    flag = next((name for name, value in given.items() if value), None)
    if flag is not None and not is_output_shown(options):
        other = "--json" if options.json else "--quiet"
        raise UsageError(f"{flag} cannot be used with {other}, which shows no output")


def is_output_shown(options: argparse.Namespace) -> bool:
    """Not beside a JSON object; and not for `drill` and `submit`, which lack these options."""
    return not options.json and not getattr(options, "quiet", True)


def read_commands(herd: str) -> dict[str, str]:
    """Id and name of the jobs without an agent. A service has the same store and logs."""
    from ramherd.cli.logs import read_herd_jobs  # noqa: PLC0415 - not for a new herd
    from ramherd.cli.store_reader import open_to_read  # noqa: PLC0415

    with closing(open_to_read()) as store:
        return {job.id: job.name for job in read_herd_jobs(store, herd) if not job.agent}


class RunDisplay:
    """The lines or the live table of a herd, with the output of its commands (id to name)."""

    def __init__(
        self, options: argparse.Namespace, commands: Mapping[str, str], *, jobs: int
    ) -> None:
        shown = commands if is_output_shown(options) else {}
        out = sys.stderr if options.json or shown else sys.stdout
        # The output of a single command passes through: nothing is drawn below it.
        is_single = len(shown) == jobs == 1
        self._palette = Palette(is_colored=is_colored(out))
        # The reader of a pipe prints where the table would be.
        is_plain = is_single or (bool(shown) and is_pipe(sys.stdout))
        self.show = choose_show(out, options, is_plain=is_plain)
        self._output: JobOutput | None = None
        if shown:
            self._output = self._make_output(options, shown, is_single=is_single)

    def _make_output(
        self, options: argparse.Namespace, commands: Mapping[str, str], *, is_single: bool
    ) -> "JobOutput":
        from ramherd.config.paths import state_path  # noqa: PLC0415 - not with --json
        from ramherd.show.job_output import ENDED, GIVEN, LIVE, JobOutput  # noqa: PLC0415

        is_terminal = sys.stdout.isatty()
        is_live = is_single or (is_terminal and not options.keep_order)
        order = LIVE if is_live else GIVEN if options.keep_order else ENDED
        tagged = is_terminal and not is_single if options.tag is None else options.tag
        return JobOutput(
            state_path() / "runs", commands,
            {"out": self._sink(sys.stdout), "err": self._sink(sys.stderr)},
            order=order, is_tagged=tagged, is_terminal=is_terminal and not is_single,
            warn=self.show.print,
        )  # fmt: skip

    def _sink(self, out: TextIO) -> "Sink":
        """Above the table, if that is on the same terminal."""
        from ramherd.show.job_output import write_all  # noqa: PLC0415

        show = self.show
        if not isinstance(show, LiveShow) or not out.isatty():
            return write_all(out.fileno(), show.print)

        def write_above(data: bytes) -> None:
            while show.is_behind:
                time.sleep(BEHIND_EVERY_S)
            show.print_above(data)

        return write_above

    def event(self, event: Event, name: str) -> None:
        self.show.event(event, name)
        if self._output is not None:
            self._output.event(event)

    def update(self, view: Callable[[], View]) -> None:
        self.show.update(view)

    def print(self, line: str) -> None:
        self.show.print(line)

    def close(self, last: Sequence[str] = ()) -> None:
        """Prints the last lines, after all output of the commands."""
        if self._output is not None:
            self._output.close()
            self._output = None
        self.show.close([self._palette.paint_word(line) for line in last])


def choose_show(
    out: TextIO, options: argparse.Namespace, *, is_plain: bool
) -> LiveShow | LineShow:  # fmt: skip
    """A table if the terminal can be redrawn, otherwise lines."""
    is_verbose = getattr(options, "verbose", False)
    if is_drawable(out) and not is_plain:
        return LiveShow(out, None if is_verbose else LASTING)
    kinds = None if is_verbose else LASTING if out.isatty() and is_plain else CHANGES
    return LineShow(out, kinds, has_summary=not options.json and not is_verbose)
