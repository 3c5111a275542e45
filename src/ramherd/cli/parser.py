"""The parser of a verb, and the text of `--help`.

A verb's file has `add_options`, and sets an epilog that begins with `examples:`. `--help` leaves
out options that few users need; `--help-all` lists them too.
"""

import argparse
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from ramherd.cli.main import read_columns
from ramherd.cli.verbs import GROUPS, RARE_VERBS, VERBS

DESCRIPTION = "Run as many coding agents as the memory holds, and never one more."
EXAMPLES = "examples:"
OVERVIEW_END = """\
examples:
  ramherd drill                                      50 fake agents in 2 GiB
  ramherd run --agent claude "fix the lint errors"   one agent, until it ends
  ramherd exec -- claude                             Claude Code, memory limited
  ramherd help run                                   options and examples
"""
# Options for experiments; settings have their own mark (config/keys.py).
RARE_OPTIONS = ("debug", "seed", "pace")


class Example(NamedTuple):
    """A line that can be typed, and its effect."""

    line: str
    what: str


class VerbFormatter(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal. The usage has one word for all options."""

    shows_all = False

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=read_columns() - 2)

    def add_usage(
        self, usage: str | None, actions: Iterable[argparse.Action],
        groups: Iterable[Any], prefix: str | None = None,
    ) -> None:  # fmt: skip
        positional = [action for action in actions if not action.option_strings]
        prog = f"{self._prog} [options]"
        short = None if usage is not None else " ".join([prog, *self._words(positional)])
        super().add_usage(usage or short, actions, groups, prefix)

    def _words(self, positional: Iterable[argparse.Action]) -> Iterator[str]:
        for action in positional:
            if action.help is not argparse.SUPPRESS:
                yield self._format_args(action, self._get_default_metavar_for_positional(action))

    def _fill_text(self, text: str, width: int, _indent: str) -> str:
        """A description, or an epilog, whose examples are laid out to the width."""
        examples, notes = split_epilog(text)
        shown = [EXAMPLES, *render_examples(examples, width)] if examples else []
        return "\n\n".join(["\n".join(shown), *notes] if shown else notes)

    def add_argument(self, action: argparse.Action) -> None:
        if self.shows_all or not is_rare(action):
            super().add_argument(action)


class FullFormatter(VerbFormatter):
    shows_all = True


class HelpAll(argparse.Action):
    """`--help-all`: prints the help with all options."""

    def __init__(self, option_strings: Any, dest: str, **_other: Any) -> None:
        what = "show all options, also those that few users need"
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=what)

    def __call__(self, parser: argparse.ArgumentParser, *_words: Any, **_more: Any) -> None:
        parser.formatter_class = FullFormatter
        parser.print_help()
        parser.exit()


class VerbParser(argparse.ArgumentParser):
    """A mistake is an error like any other: one line, with a hint."""

    def __init__(self, **settings: Any) -> None:
        # An abbreviation would act: `up --instal` is a mistake, not an installation.
        fixed = {"add_help": False, "allow_abbrev": False}
        super().__init__(**{"formatter_class": VerbFormatter, **settings, **fixed})
        self.add_argument("-h", "--help", action="help", help="show this help")
        self._words: list[str] = []

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = list(args or ())
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        from ramherd.cli.mistakes import wrong_option  # noqa: PLC0415 - only for errors

        raise wrong_option(message, self._words, self)


def make_parser(verb: str) -> VerbParser:
    parser = VerbParser(prog=f"ramherd {verb}", description=as_sentence(VERBS[verb]))
    parser.add_argument("--help-all", action=HelpAll)
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    import_module(f"ramherd.cli.{verb}").add_options(parser)
    return parser


def as_sentence(what: str) -> str:
    return f"{what[:1].upper()}{what[1:]}."


def is_rare(action: argparse.Action) -> bool:
    """Whether `--help` leaves it out: a setting for experiments, or the opposite of a switch."""
    from ramherd.config.keys import BY_NAME  # noqa: PLC0415 - only for help

    if (action.help or "").startswith("the opposite of"):
        return True
    key = BY_NAME.get(action.dest)
    return action.dest in RARE_OPTIONS or (key is not None and key.is_rare)


def render_overview(*, shows_all: bool = False) -> str:
    """`ramherd --help`: the verbs, by purpose."""
    lines = [DESCRIPTION, "", "usage: ramherd VERB [options]"]
    for title, verbs in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [
            f"  {verb:<11} {what}"
            for verb, what in verbs.items()
            if shows_all or verb not in RARE_VERBS
        ]
    return "\n".join([*lines, "", OVERVIEW_END])


def split_epilog(epilog: str) -> tuple[list[Example], list[str]]:
    """The examples, and the paragraphs after them."""
    first, *rest = epilog.strip("\n").split("\n\n")
    head, *lines = first.splitlines()
    if head != EXAMPLES:
        return [], [first, *rest]
    return [parse_example(line) for line in lines], rest


def render_examples(examples: list[Example], width: int) -> Iterator[str]:
    """The explanations in a column; one that does not fit is below its command."""
    column = max((len(line) for line, what in examples if what), default=0)
    for line, what in examples:
        beside = f"  {line:<{column}}  {what}".rstrip()
        if len(beside) <= width or not what:
            yield beside
        else:
            yield from (f"  {line}", f"      {what}")


def parse_example(line: str) -> Example:
    """The command ends at two spaces."""
    command, _gap, what = line.strip().partition("  ")
    return Example(command, what.strip().removeprefix("# "))
