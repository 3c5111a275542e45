"""`ramherd help [VERB]`: the same as `ramherd VERB --help`."""

import argparse

from ramherd.cli.main import call
from ramherd.cli.parser import render_overview

EPILOG = """\
examples:
  ramherd help              all verbs
  ramherd help run          the options and examples of a verb
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("words", metavar="VERB", nargs="*", help="the verb")
    parser.set_defaults(verb=help_)


def help_(options: argparse.Namespace) -> int:
    if not options.words:
        print(render_overview(), end="")
        return 0
    return call([*options.words, "--help"])
