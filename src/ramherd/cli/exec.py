"""`ramherd exec -- COMMAND`: an interactive session in a pen, as if it ran bare.

Imports nothing before its options are right: see `ramherd/session`.
"""

from __future__ import annotations

from ramherd.errors import UsageError
from ramherd.units import MIB, parse_duration, parse_size

TYPE_CHECKING = False  # `typing` costs 4 ms
if TYPE_CHECKING:
    import argparse

EPILOG = """\
examples:
  ramherd exec -- claude
  ramherd exec --memory-limit 4GiB -- npm run dev

The terminal is the program's: size, Ctrl-C, Ctrl-Z and pipes are as without ramherd. When it
ends or the window closes, everything that it started is ended.

exit codes: the program's (128+N for signal N), 127 not found, 126 not executable, 2 usage,
3 this machine cannot, 130 interrupted while waiting for memory
"""
# As jobfile.py and Policy have them.
MEMORY_BYTES = 512 * MIB
GRACE_S = 10.0
KINDS = ("auto", "cgroup1", "polling")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.usage = "ramherd exec [options] -- COMMAND [ARGUMENT ...]"
    add = parser.add_argument
    add("--memory", metavar="SIZE", help="what it needs: it waits until so much fits (512MiB)")
    add("--memory-limit", metavar="SIZE", help="what it may never exceed")
    add("--pen", choices=KINDS, default="auto", help="how it is held (auto)")
    add("--no-wait", action="store_true", help="fail at once when memory is short (exit 3)")
    add("--grace", metavar="TIME", help="between TERM and KILL (10s)")
    parser.set_defaults(verb=exec_)


def exec_(options: argparse.Namespace) -> int:
    if not options.command:
        raise UsageError("no command after --", hint="ramherd exec -- claude")
    memory = size(options.memory, "--memory")
    limit = size(options.memory_limit, "--memory-limit")
    grace = GRACE_S if options.grace is None else parse_duration(options.grace)
    from ramherd.session.start import run_session  # noqa: PLC0415

    return run_session(
        options.command, memory_bytes=memory or MEMORY_BYTES, limit_bytes=limit,
        kind=options.pen, no_wait=options.no_wait, grace_s=grace,
    )  # fmt: skip


def size(text: str | None, flag: str) -> int | None:
    try:
        return None if text is None else parse_size(text)
    except UsageError as error:
        raise UsageError(f"{flag}: {error}", hint=error.hint) from None
