"""`ramherd exec -- COMMAND`: an interactive session in a pen, as if it ran bare.

Imports nothing before its options are right: see `ramherd/session`.
"""

from __future__ import annotations

import os

from ramherd.core.errors import UsageError

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
# As jobs/reader.py and Policy have them.
MEMORY_BYTES = 512 << 20
GRACE_S = 10.0
KINDS = ("auto", "cgroup2", "cgroup1", "polling")


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


class Plain:
    """Options that are nothing special, as argparse would give them."""

    def __init__(self) -> None:
        self.memory: str | None = None
        self.memory_limit: str | None = None
        self.grace: str | None = None
        self.pen = "auto"
        self.no_wait = self.debug = False
        self.command: list[str] | None = None
        self.verb = exec_


def read_plain(argv: list[str]) -> Plain | None:
    """None for whatever argparse has to look at: help, abbreviations, mistakes."""
    options, words = Plain(), iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if word in ("--no-wait", "--debug"):
            setattr(options, word[2:].replace("-", "_"), True)
        elif name in ("--memory", "--memory-limit", "--grace", "--pen"):
            given = value if equals else next(words, None)
            if given is None or given.startswith("-"):
                return None
            setattr(options, name[2:].replace("-", "_"), given)
        else:
            return None
    return options if options.pen in KINDS else None


def exec_(options: argparse.Namespace | Plain) -> int:
    if not options.command:
        raise UsageError("no command after --", hint="ramherd exec -- claude")
    memory = parse(options.memory, "--memory")
    limit = parse(options.memory_limit, "--memory-limit")
    grace = parse(options.grace, "--grace")
    from ramherd.exec.own_cgroups import read_own_cgroups  # noqa: PLC0415
    from ramherd.exec.session import run_session  # noqa: PLC0415

    if os.getuid() != 0 and "memory" not in read_own_cgroups():
        from ramherd.act.systemd_scope import rescope  # noqa: PLC0415

        rescope(options.pen)
    code = run_session(
        options.command, memory_bytes=int(memory or MEMORY_BYTES),
        limit_bytes=int(limit) if limit is not None else None,
        kind=options.pen, no_wait=options.no_wait, grace_s=grace or GRACE_S,
    )  # fmt: skip
    # Nothing is buffered, and tearing down the interpreter takes 5 ms.
    os._exit(code)


def parse(text: str | None, flag: str) -> float | None:
    if text is None:
        return None
    from ramherd.core.units import parse_duration, parse_size  # noqa: PLC0415

    try:
        return parse_duration(text) if flag == "--grace" else parse_size(text)
    except UsageError as error:
        raise UsageError(f"{flag}: {error}", hint=error.hint) from None
