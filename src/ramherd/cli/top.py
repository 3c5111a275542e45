"""`ramherd top`: runs, queue, memory, sessions and strays on one screen, with keys to act."""

import argparse
import importlib.util
import sys

from ramherd.core.errors import RamherdError, UsageError
from ramherd.show.tty import is_drawable

EPILOG = """\
examples:
  ramherd top               until q

With a service or without one. Keys: ? lists them; / filters, : jumps to a
panel or a job, l follows the log of a job, d shows its changes, m merges them,
c cancels, r retries, R recycles, p and u pause and resume, x ends a stray.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.set_defaults(verb=top)


def top(_options: argparse.Namespace) -> int:
    if not sys.stdin.isatty() or not is_drawable(sys.stdout):
        raise UsageError(
            "top needs a terminal",
            hint="in a script: ramherd status --json, or ramherd jobs --json",
        )
    if importlib.util.find_spec("textual") is None:
        raise RamherdError(
            f"top needs textual, which {sys.executable} cannot import",
            hint=f"{sys.executable} -m pip install textual",
        )
    from ramherd.top.run_top import run_app, run_guarded  # noqa: PLC0415 - only on a terminal

    return run_guarded(run_app)
