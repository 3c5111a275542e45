"""The manual pages, made from the parsers like `--help`: `python -m ramherd.cli.manual DIRECTORY`.

One page for ramherd, and one for each verb: ramherd.1, ramherd-run.1, ...
"""

import argparse
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ramherd import __version__
from ramherd.cli.parser import DESCRIPTION, OVERVIEW_END, as_sentence, make_parser, split_epilog
from ramherd.cli.verbs import GROUPS, VERBS

EXIT_CODES = {
    0: "All jobs are done.",
    1: "A job failed or cannot go on.",
    2: "The command line, a setting or a job file is wrong; nothing was started.",
    3: "This machine or the service cannot do it: no memory, no right, refused.",
    70: "A defect of ramherd.",
    130: "Interrupted.",
}
FILES = {
    "ramherd.toml": "Settings of a project: in the working directory, or above it.",
    "~/.config/ramherd/config.toml": "Settings of the user.",
    "$XDG_STATE_HOME/ramherd, ~/.local/state/ramherd": "The store, and the output of runs.",
}


def main() -> None:
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in render_pages().items():
        (directory / name).write_text(text)
    print(
        f"wrote {len(VERBS) + 1} pages to {directory}; man -l {directory}/ramherd.1 shows the first"
    )


def render_pages() -> dict[str, str]:
    """File name -> text."""
    pages = {"ramherd.1": "\n".join(render_main()) + "\n"}
    for verb in VERBS:
        pages[f"ramherd-{verb}.1"] = "\n".join(render_verb(verb)) + "\n"
    return pages


def render_main() -> Iterator[str]:
    yield from render_head("ramherd", "run coding agents within the memory of this machine")
    yield from (".SH SYNOPSIS", ".B ramherd", r"\fIVERB\fR [\fIoptions\fR]")
    yield from (".SH DESCRIPTION", roff(DESCRIPTION), ".SH VERBS")
    for title, verbs in GROUPS.items():
        yield f".SS {roff(title.capitalize())}"
        for verb, what in verbs.items():
            yield from (".TP", rf"\fBramherd\-{verb}\fR(1)", roff(as_sentence(what)))
    yield from render_examples(OVERVIEW_END)
    yield ".SH FILES"
    for path, what in FILES.items():
        yield from (".TP", f".I {roff(path)}", roff(what))
    yield from (".SH ENVIRONMENT", ".TP", r".B RAMHERD_*")
    yield "Each setting has a variable: see ramherd\\-config(1)."
    yield ".SH EXIT STATUS"
    for code, what in EXIT_CODES.items():
        yield from (".TP", f".B {code}", roff(what))


def render_verb(verb: str) -> Iterator[str]:
    parser = make_parser(verb)
    yield from render_head(f"ramherd-{verb}", VERBS[verb])
    usage = parser.format_usage().removeprefix("usage: ")
    yield from (".SH SYNOPSIS", roff(" ".join(usage.split())))
    yield from (".SH DESCRIPTION", roff(" ".join((parser.description or "").split())))
    yield ".SH OPTIONS"
    yield from render_actions(parser)
    yield from render_examples(parser.epilog or "")
    yield from (".SH SEE ALSO", r"\fBramherd\fR(1)")


def render_head(name: str, what: str) -> Iterator[str]:
    day = time.strftime("%Y-%m-%d")
    yield f'.TH {roff(name.upper())} 1 "{day}" "ramherd {__version__}" "ramherd"'
    yield from (".SH NAME", rf"{roff(name)} \- {roff(what)}")


def render_actions(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield f".SS {roff(word)}"
                yield from render_actions(inner)
        elif action.help is not argparse.SUPPRESS:
            what = (action.help or "").replace("%%", "%")
            yield from (".TP", render_names(action), roff(what) or r"\&")


def render_names(action: argparse.Action) -> str:
    choices = "|".join(map(str, action.choices or ()))
    value = roff(str(action.metavar or choices or action.dest.upper()))
    if not action.option_strings:
        return rf"\fI{value}\fR"
    names = ", ".join(rf"\fB{roff(flag)}\fR" for flag in action.option_strings)
    return names if action.nargs == 0 else rf"{names} \fI{value}\fR"


def render_examples(epilog: str) -> Iterator[str]:
    examples, notes = split_epilog(epilog)
    if examples:
        yield ".SH EXAMPLES"
    for example in examples:
        yield from (".TP", rf"\fB{roff(example.line)}\fR", roff(example.what) or r"\&")
    if notes:
        yield ".SH NOTES"
    for number, note in enumerate(notes):
        yield from (".PP",) if number else ()
        yield from (".nf", *map(roff, note.splitlines()), ".fi")


def roff(text: str) -> str:
    """roff reads a line that begins with a dot or an apostrophe as a request."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped)


if __name__ == "__main__":
    main()
