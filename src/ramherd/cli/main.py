"""`ramherd VERB ...`: finds the verb, and turns errors into one line and an exit code.

Only the module of the verb that is called is imported, so that each call starts quickly.
"""

from __future__ import annotations

import os
import sys

from ramherd import __version__
from ramherd.core.errors import RamherdError, UsageError

TYPE_CHECKING = False  # `typing` costs 4 ms
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import NoReturn

DESCRIPTION = "Run as many coding agents as the memory holds, and never one more."
# One file a verb, of the same name.
VERBS = {
    "run": "run jobs and wait for them",
    "up": "the service: runs what is submitted, whoever dies meanwhile",
    "submit": "give jobs to the service",
    "jobs": "the jobs there are, and why they wait",
    "cancel": "end a job or a herd of the service",
    "pause": "start nothing new",
    "resume": "start again",
    "retry": "a job that failed, once more",
    "recycle": "restart a run, resumed",
    "exec": "run a program on this terminal, in a pen",
    "hook": "Claude Code's own subagents wait for memory",
    "logs": "what a job printed",
    "events": "what was decided, and why",
    "drill": "try it with fake agents",
    "simulate": "a herd on recorded memory, in seconds",
    "history": "what was learned of each kind of job",
    "ps": "agents, servers and tools on this machine, and whose they are",
    "reap": "end what agents left behind; a dry run without --yes",
    "prune": "remove what finished runs printed",
    "config": "each setting and where it came from",
    "doctor": "what is wrong with this machine, and what to do",
}
WITH_COMMAND = ("run", "submit", "exec")
INTERRUPTED = 130
BUG = 70


def main(argv: Sequence[str] | None = None) -> None:
    sys.exit(call(list(sys.argv[1:] if argv is None else argv)))


def call(argv: list[str]) -> int:
    """Words after `--` are the user's command, not options of ours."""
    open_standard_streams()
    at = argv.index("--") if "--" in argv else len(argv)
    options, unknown = make_parser(argv[:at]).parse_known_args(argv[:at])
    options.command = argv[at + 1 :] if at < len(argv) else None
    try:
        if unknown:
            refuse_unknown(unknown, options, argv[0])
        if options.command is not None and argv[0] not in WITH_COMMAND:
            raise UsageError(f"{argv[0]} takes no command", hint=f"ramherd {argv[0]} --help")
        return int(options.verb(options))
    except RamherdError as error:
        print_error(f"{error}" + (f"\n  hint: {error.hint}" if error.hint else ""))
        if options.debug:
            print_traceback()
        return error.exit_code
    except KeyboardInterrupt:
        print_error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe: Python must not write to it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        print_error(
            f"a bug: {type(error).__name__}: {error}\n  hint: add --debug, and report what it says"
        )
        if options.debug:
            print_traceback()
        return BUG


def refuse_unknown(unknown: list[str], options: argparse.Namespace, verb: str) -> NoReturn:
    """In one line, with the option that was meant, or where a command goes."""
    import difflib  # noqa: PLC0415 - only once something is wrong

    named = f"ramherd {verb}" if verb in VERBS else "ramherd"
    word = unknown[0].partition("=")[0]
    flags = [f"--{name.replace('_', '-')}" for name in vars(options)]
    hint = f"{named} --help"
    if word.startswith("-") and (close := difflib.get_close_matches(word, flags, 1)):
        hint = f"did you mean {close[0]!r}?"
    elif not word.startswith("-") and verb == "exec" and options.command is None:
        hint = f"{named} -- {' '.join(unknown)}"
    raise UsageError(f"unknown argument {word!r}", hint=hint)


def open_standard_streams() -> None:
    """A caller may have closed them (`>&-`): a file that we open must not take their number."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, mode, closefd=False))  # noqa: SIM115


def print_traceback() -> None:
    """Imported only now: 4 ms that no start should pay."""
    import traceback  # noqa: PLC0415

    traceback.print_exc()


def print_error(text: str) -> None:
    print(f"ramherd: {text}", file=sys.stderr)


def make_parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """With the options of the verb that stands first; the other verbs are added for `--help` and
    for the message about an unknown verb only (3 ms).
    """
    import argparse  # noqa: PLC0415
    from importlib import import_module  # noqa: PLC0415

    def make_formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.RawDescriptionHelpFormatter(prog, width=read_columns() - 2)

    parser = argparse.ArgumentParser(
        prog="ramherd", description=DESCRIPTION, formatter_class=make_formatter
    )
    parser.add_argument("--version", action="version", version=f"ramherd {__version__}")
    verbs = parser.add_subparsers(prog="ramherd", title="verbs", required=True, metavar="VERB")
    named = argv[0] if argv and argv[0] in VERBS else None
    for verb, what in VERBS.items():
        if named not in (None, verb):
            continue
        options = verbs.add_parser(verb, help=what, formatter_class=make_formatter)
        options.add_argument("--debug", action="store_true", help="show tracebacks")
        if named:
            import_module(f"ramherd.cli.{verb}").add_options(options)
    return parser


def read_columns() -> int:
    """As `shutil.get_terminal_size` does, which argparse would import for each option: 9 ms."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80
