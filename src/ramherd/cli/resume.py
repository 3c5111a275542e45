"""`ramherd resume`: takes `ramherd pause` back."""

import argparse

from ramherd.client.client import Client


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(verb=resume)


def resume(_options: argparse.Namespace) -> int:
    Client().resume()
    return 0
