"""Every sentence that a user can see, as one text: tests/data/sentences.txt.

Reasons are rendered with 1 and with 2, so that singular and plural can be read. Help comes from the
parser of each verb. Errors, findings of the doctor and printed lines are read off the source, with
expressions in braces. `make generate` writes the file; read its diff as a user would.
"""

import argparse
import ast
from collections.abc import Iterable, Iterator

from ramherd.cli.parser import make_parser, render_overview
from ramherd.cli.verbs import VERBS
from ramherd.core.errors import RamherdError
from ramherd.core.units import GIB
from ramherd.show.reasons import NO_GRACE, SENTENCES, UNITS, UNNAMED_REQUEST, UNTIMED_LIMIT, Text
from support.source_files import FILES

VARIANTS = (UNTIMED_LIMIT, UNNAMED_REQUEST, NO_GRACE)
# Calls whose arguments are texts for the user, besides those of error classes.
PRINTED = {
    "print": "printed",
    "print_line": "printed",
    "print_error": "printed",
    "Finding": "found",
}
HEADINGS = ("reasons", "help", "errors", "found", "printed")


def render_sentences() -> str:
    sections = {"reasons": list(render_reasons()), "help": list(render_help())}
    for kind, line in sorted(set(render_source())):
        sections.setdefault(kind, []).append(line)
    return "\n\n".join(f"# {name}\n\n" + "\n".join(sections[name]) for name in HEADINGS) + "\n"


def render_reasons() -> Iterator[str]:
    for sentence in (*SENTENCES.values(), *VARIANTS):
        yield from dict.fromkeys(sentence.format_map(Numbers(number)) for number in (1, 2))


class Numbers(dict[str, Text]):
    """Any field of a sentence: a number with its unit, or its own name where it is a text."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def __missing__(self, name: str) -> Text:
        return Field(self.number, name)


class Field(Text):
    """A field that is followed by a noun is the bare number."""

    number: int

    def __new__(cls, number: int, name: str) -> "Field":
        field = super().__new__(cls, render_field(number, name))
        field.number = number
        return field

    def __format__(self, nouns: str) -> str:
        return format(Text(str(self.number)), nouns) if nouns else str(self)


def render_field(number: int, name: str) -> str:
    if name.endswith("_at"):
        return f"0{number}:00"
    for ending, render in UNITS.items():
        if name.endswith(ending):
            return render(number * {"_bytes": GIB, "pressure": 0.01}.get(ending, 1))
    return name.upper()


def render_help() -> Iterator[str]:
    yield from render_overview(shows_all=True).splitlines()
    for verb in VERBS:
        yield from render_parser(make_parser(verb))


def render_parser(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"{parser.prog}: {parser.description}"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from render_parser(inner)
        elif action.help not in (None, argparse.SUPPRESS):
            name = "/".join(action.option_strings) or action.metavar or action.dest
            yield f"{parser.prog} {name}: {action.help}"
    yield from (parser.epilog or "").splitlines()


def render_source() -> Iterator[tuple[str, str]]:
    """(heading, line) for each call that makes a text."""
    nodes = [node for path in FILES.values() for node in ast.walk(ast.parse(path.read_text()))]
    kinds = {**PRINTED, **dict.fromkeys(find_errors(nodes), "errors")}
    for node in nodes:
        if isinstance(node, ast.Call) and (kind := kinds.get(getattr(node.func, "id", ""))):
            yield from ((kind, text) for text in render_call(node))


def find_errors(nodes: Iterable[ast.AST]) -> set[str]:
    """The names of all classes of errors that are shown without a traceback."""
    bases = {
        node.name: {getattr(base, "id", "") for base in node.bases}
        for node in nodes
        if isinstance(node, ast.ClassDef)
    }
    found = {RamherdError.__name__}
    while more := {name for name, of in bases.items() if of & found} - found:
        found |= more
    return found


def render_call(call: ast.Call) -> Iterator[str]:
    texts = [text for argument in call.args for text in render_text(argument)]
    hints = [
        text for word in call.keywords if word.arg == "hint" for text in render_text(word.value)
    ]
    if texts:
        yield " | ".join(texts) + "".join(f" (hint: {hint})" for hint in hints)


def render_text(node: ast.expr) -> Iterator[str]:
    """The sentences of an argument: none if it is a name or a single word."""
    match node:
        case ast.Constant(value=str(text)) if " " in text:
            yield one_line(text)
        case ast.JoinedStr(values=parts):
            text = "".join(map(render_part, parts))
            if " " in text:
                yield one_line(text)
        case ast.IfExp(body=one, orelse=other):
            yield from (*render_text(one), *render_text(other))
        case _:
            pass


def render_part(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    return f"{{{ast.unparse(part.value)}}}"


def one_line(text: str) -> str:
    return text.strip().replace("\n", "\\n").replace("\x1b", "\\e")
