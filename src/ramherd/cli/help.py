"""`ramherd help [VERB]`: the same as `ramherd VERB --help`."""

import argparse
import json
from typing import Any

from ramherd.cli.main import call, refuse_verb
from ramherd.cli.parser import make_parser, render_overview
from ramherd.cli.verbs import VERBS

EPILOG = """\
examples:
  ramherd help              all verbs
  ramherd help run          the options and examples of a verb
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("words", metavar="VERB", nargs="*", help="the verb")
    parser.add_argument("--json", action="store_true", help="verbs and options as one JSON object")
    parser.set_defaults(verb=help_)


def help_(options: argparse.Namespace) -> int:
    if options.json:
        print(json.dumps({"verbs": [as_json(verb) for verb in options.words or VERBS]}))
        return 0
    if not options.words:
        print(render_overview(), end="")
        return 0
    return call([*options.words, "--help"])


def as_json(verb: str) -> dict[str, Any]:
    if verb not in VERBS:
        refuse_verb([verb])
    actions = make_parser(verb)._actions
    return {
        "verb": verb,
        "what": VERBS[verb],
        "options": [
            {"flags": action.option_strings, "value": action.metavar, "what": action.help}
            for action in actions
            if action.option_strings and action.help is not argparse.SUPPRESS
        ],
    }
