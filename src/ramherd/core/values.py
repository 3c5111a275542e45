"""The types of values that users write in files, variables and flags, and their parsers.

The error for a wrong value describes the right form; the caller adds where the value was found.
"""

import shlex
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ramherd.core.agent_names import AGENTS
from ramherd.core.errors import UsageError
from ramherd.core.units import (
    LEAST_MEMORY_BYTES,
    format_duration,
    format_size,
    parse_duration,
    parse_memory,
    parse_size,
    shown,
)

NAME_LENGTH = 100
# An amount, a size and a time that no herd reaches.
MOST_USD = 1e9
MOST_BYTES = 1 << 62
MOST_SECONDS = 1e9

Schema = dict[str, Any]


class ValueType(NamedTuple):
    """A type of value: how it is parsed, shown and described.

    Values of a job come from TOML or JSON, and `parse` gets them unchanged. Settings can also be
    text from variables and flags: `from_text` converts that text to the type that `parse` expects.
    """

    metavar: str
    parse: Callable[[Any], Any]
    show: Callable[[Any], str] = str
    from_text: Callable[[Any], Any] = lambda value: value
    # JSON Schemas of the written value and of the parsed value.
    written: Schema = {}  # noqa: RUF012 - never changed
    parsed: Schema = {}  # noqa: RUF012
    # The type as a Python annotation.
    annotation: str = "str"

    def parse_setting(self, value: Any) -> Any:
        return self.parse(self.from_text(value))


def nearest(word: str, words: Iterable[str]) -> str:
    known = list(words)
    if close := find_near(word, known):
        return f"did you mean {close!r}?"
    return f"known values: {', '.join(known[:20])}"


def find_near(word: str, words: Iterable[str], least: float = 0.6) -> str:
    """The word that was probably meant, or ""."""
    import difflib  # noqa: PLC0415 - only once something is wrong: imports are a cost

    close = difflib.get_close_matches(word, list(words), 1, least)
    return close[0] if close else ""


def parse_text(value: Any) -> str:
    text = parse_raw_text(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{shown(text)} is not valid UTF-8") from None
    return text


def parse_raw_text(value: Any) -> str:
    """Any bytes that a program accepts. Bytes that are not UTF-8 are U+DC80 to U+DCFF, as in Python
    (surrogateescape).
    """
    if not isinstance(value, str) or "\0" in value:
        raise UsageError("is not a string without NUL")
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise UsageError(
            "contains half a surrogate pair, which cannot be passed to a program"
        ) from None
    return value


def parse_name(value: Any) -> str:
    name = parse_text(value)
    if not name or len(name) > NAME_LENGTH or not name.isprintable():
        raise UsageError(f"is not 1 to {NAME_LENGTH} printable characters")
    return name


def parse_names(value: Any) -> tuple[str, ...]:
    """A list, or one name. Duplicates are removed."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        raise UsageError("is not a list of job names")
    return tuple(dict.fromkeys(parse_name(name) for name in names))


def parse_integer(value: Any) -> int:
    # SQLite stores 64 bits.
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 63:
        raise UsageError(f"{shown(value)} is not a whole number", hint="write it like 4")
    return value


def parse_count(value: Any) -> int:
    if parse_integer(value) < 0:
        raise UsageError(f"{shown(value)} is below zero", hint="write 0 or more")
    return int(value)


def parse_number(value: Any) -> int:
    if parse_integer(value) < 1:
        raise UsageError(f"{shown(value)} is below 1", hint="write 1 or more")
    return int(value)


def parse_amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MOST_USD:
        raise UsageError(f"{shown(value)} is not an amount above zero", hint="write it like 2.50")
    return float(value)


def parse_agent(value: Any) -> str:
    if value not in AGENTS:
        hint = nearest(str(value), AGENTS)
        raise UsageError(f"{shown(value)} is not a known agent", hint=hint)
    return str(value)


def parse_words(value: Any) -> tuple[str, ...]:
    """A list, or a line that is split as a shell would split it."""
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:
        raise UsageError(f"{shown(value)} has {str(error).lower()}") from None
    if not isinstance(words, list | tuple):
        raise UsageError(f"{shown(value)} is neither a list of strings nor a line of words")
    return tuple(parse_raw_text(word) for word in words)


def parse_patterns(value: Any) -> tuple[str, ...]:
    """A list, or a line of names separated by commas or spaces."""
    names = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(map(parse_text, names)):
        raise UsageError(f"{shown(value)} is neither a list of names nor a string of names")
    return tuple(names)


def parse_servers(value: Any) -> tuple[str, ...]:
    """Names of MCP servers, as a list or in one text; an empty one means none."""
    return tuple(dict.fromkeys(parse_name(name) for name in parse_patterns(value)))


def parse_switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{shown(value)} is neither true nor false", hint="write true or false")
    return value


def parse_variables(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise UsageError("is not a table of strings")
    for name, text in value.items():
        if not name or "=" in parse_raw_text(name):
            raise UsageError(f"{shown(name)} cannot be the name of a variable")
        if not isinstance(text, str):
            raise UsageError(f"{shown(name)} is not a string", hint="put its value in quotes")
        try:
            parse_raw_text(text)
        except UsageError as error:
            raise UsageError(f"the value of {shown(name)} {error}") from None
    return value


def integer_from_text(value: Any) -> Any:
    return from_text_by(int, value)


def number_from_text(value: Any) -> Any:
    return from_text_by(float, value)


def from_text_by(convert: Callable[[str], Any], value: Any) -> Any:
    """Text that does not convert is returned unchanged, and the parser rejects it with its own
    message. Python's conversions would also accept the digits of other scripts, and `1_000`.
    """
    if not isinstance(value, str) or not value.isascii() or "_" in value:
        return value
    try:
        return convert(value)
    except ValueError:
        return value


def size_from_number(value: Any) -> Any:
    """A size from a settings or job file, where a number without a unit is a mistake."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and abs(value) < 1 << 63 else value


def switch_from_text(value: Any) -> Any:
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False}
    return words.get(str(value).lower(), value)


STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}
STRINGS: Schema = {"type": "array", "items": STRING}
SHORT: Schema = {"type": "string", "minLength": 1, "maxLength": NAME_LENGTH}

TEXT = ValueType("TEXT", parse_text, written=STRING, parsed=STRING)
NAME = ValueType("NAME", parse_name, written=SHORT, parsed=STRING)
NAMES = ValueType(
    "NAMES", parse_names, ", ".join,
    written={"anyOf": [SHORT, {"type": "array", "items": SHORT}]}, parsed=STRINGS,
    annotation="str | Sequence[str]",
)  # fmt: skip
RAW_TEXT = TEXT._replace(parse=parse_raw_text)
PROGRAM = ValueType("PATH", parse_raw_text, written=STRING, parsed=STRING)
AGENT = ValueType("AGENT", parse_agent, written={**STRING, "enum": list(AGENTS)}, parsed=STRING)
WORDS = ValueType(
    "WORDS", parse_words, shlex.join, written={"anyOf": [STRING, STRINGS]}, parsed=STRINGS,
    annotation="str | Sequence[str]",
)  # fmt: skip
PATTERNS = ValueType(
    "NAMES", parse_patterns, ", ".join, parsed=STRINGS, annotation="str | Sequence[str]"
)
SERVERS = PATTERNS._replace(parse=parse_servers, written={"anyOf": [STRING, STRINGS]})
WHOLE = ValueType(
    "N", parse_integer, from_text=integer_from_text, written=INTEGER, parsed=INTEGER,
    annotation="int",
)  # fmt: skip
COUNT = WHOLE._replace(parse=parse_count, written={**INTEGER, "minimum": 0})
NUMBER = WHOLE._replace(parse=parse_number, written={**INTEGER, "minimum": 1})
SWITCH = ValueType(
    "", parse_switch, lambda value: str(value).lower(), switch_from_text,
    written=BOOLEAN, parsed=BOOLEAN, annotation="bool",
)  # fmt: skip
AMOUNT = ValueType(
    "USD", parse_amount, "{:g}".format, number_from_text,
    written={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": MOST_USD},
    parsed={"type": "number"}, annotation="float",
)  # fmt: skip
# A size of memory.
SIZE = ValueType(
    "SIZE", parse_memory, format_size, size_from_number,
    written={
        "anyOf": [
            {
                "description": "512MiB, 2GB",
                "type": "string", "pattern": "^[0-9]{1,6}(KiB|MiB|GiB|KB|MB|GB)$",
            },
            {
                "description": "bytes",
                "type": "integer", "minimum": LEAST_MEMORY_BYTES, "maximum": MOST_BYTES,
            },
        ],
    },
    parsed=INTEGER, annotation="str | int",
)  # fmt: skip
# A size of files, which may be small.
FILE_SIZE = SIZE._replace(parse=parse_size)
TIME = ValueType(
    "TIME", parse_duration, format_duration,
    written={
        "anyOf": [
            {
                "description": "90s, 5m, 1h",
                "type": "string", "pattern": "^[0-9]{1,6}(ms|s|m|h|d)$",
            },
            {
                "description": "seconds",
                "type": "number", "exclusiveMinimum": 0, "maximum": MOST_SECONDS,
            },
        ],
    },
    parsed={"type": "number"}, annotation="str | float",
)  # fmt: skip
VARIABLES = ValueType(
    "TABLE", parse_variables, written={"type": "object", "additionalProperties": STRING},
    parsed={"type": "object"}, annotation="Mapping[str, str]",
)  # fmt: skip
