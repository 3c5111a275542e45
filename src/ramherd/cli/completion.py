"""`ramherd completion bash|zsh|fish`: the script that makes a shell complete ramherd's words.

The scripts have no list of verbs and options: they call `ramherd __complete` (cli/complete.py).
"""

import argparse
from pathlib import Path

EPILOG = """\
examples:
  eval "$(ramherd completion bash)"     for this shell, or in ~/.bashrc
  eval "$(ramherd completion zsh)"      in ~/.zshrc, after compinit
  ramherd completion fish | source      in ~/.config/fish/config.fish

Tab completes verbs, options, jobs, herds, profiles and agents.
"""
SHELLS = ("bash", "zsh", "fish")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(verb=completion)


def completion(options: argparse.Namespace) -> int:
    print(read_script(options.shell), end="")
    return 0


def read_script(shell: str) -> str:
    return (Path(__file__).parent / f"completions/ramherd.{shell}").read_text()
