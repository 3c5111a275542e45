"""`ramherd pause`: what runs goes on, nothing new is started, until `ramherd resume`."""

import argparse

from ramherd.client.client import Client


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(verb=pause)


def pause(_options: argparse.Namespace) -> int:
    Client().pause()
    return 0
