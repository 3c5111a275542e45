"""`ramherd pause`: what runs goes on, nothing new is started, until `ramherd resume`."""

import argparse

from ramherd.client.client import Client

EPILOG = """\
examples:
  ramherd pause             running jobs go on, no other job starts
  ramherd resume            undo it
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.set_defaults(verb=pause)


def pause(_options: argparse.Namespace) -> int:
    Client().pause()
    return 0
