"""`ramherd VERB ...`: finds the verb, and turns errors into one line and an exit code."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

from ramherd import __version__
from ramherd.cli import drill, history, logs, run, simulate
from ramherd.errors import RamherdError

DESCRIPTION = "Run as many coding agents as the memory holds, and never one more."
INTERRUPTED = 130
BUG = 70


def main(argv: Sequence[str] | None = None) -> None:
    sys.exit(call(list(sys.argv[1:] if argv is None else argv)))


def call(argv: list[str]) -> int:
    """What follows `--` is a command of the user's and no option of ours."""
    at = argv.index("--") if "--" in argv else len(argv)
    options = make_parser().parse_args(argv[:at])
    options.command = argv[at + 1 :] if at < len(argv) else None
    try:
        return int(options.verb(options))
    except RamherdError as error:
        say(f"{error}" + (f"\n  hint: {error.hint}" if error.hint else ""))
        if options.debug:
            traceback.print_exc()
        return error.exit_code
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away; nothing more can be said, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        say(f"a bug: {type(error).__name__}: {error}\n  hint: add --debug, and report what it says")
        if options.debug:
            traceback.print_exc()
        return BUG


def say(text: str) -> None:
    print(f"ramherd: {text}", file=sys.stderr)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ramherd", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"ramherd {__version__}")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show tracebacks")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")
    for module in (run, logs, drill, simulate, history):
        module.add_verb(verbs, common)
    return parser
