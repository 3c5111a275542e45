"""`ramherd resume`: takes `ramherd pause` back."""

import argparse

from ramherd.client.client import Client

EPILOG = """\
examples:
  ramherd resume            undo ramherd pause
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.set_defaults(verb=resume)


def resume(_options: argparse.Namespace) -> int:
    Client().resume()
    return 0
