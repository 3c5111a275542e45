"""Values as users write them in files, variables and flags. A wrong one is an error that says what
is right.
"""

import shlex
from collections.abc import Iterable
from typing import Any

from ramherd.core.agent_names import AGENTS
from ramherd.core.errors import UsageError
from ramherd.core.units import shown

NAME_LENGTH = 100


def nearest(word: str, words: Iterable[str]) -> str:
    import difflib  # noqa: PLC0415 - only once something is wrong: imports are a cost

    known = list(words)
    close = difflib.get_close_matches(word, known, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are: {', '.join(known[:20])}"


def as_text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise UsageError("is not a text without NUL")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError("holds half a surrogate pair, which no program can be given") from None
    return value


def as_name(value: Any) -> str:
    name = as_text(value)
    if not name or len(name) > NAME_LENGTH or not name.isprintable():
        raise UsageError(f"is not 1 to {NAME_LENGTH} printable characters")
    return name


def as_integer(value: Any) -> int:
    # SQLite keeps 64 bits.
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 63:
        raise UsageError(f"{shown(value)} is not a whole number")
    return value


def as_count(value: Any) -> int:
    if as_integer(value) < 0:
        raise UsageError(f"{shown(value)} is below zero")
    return int(value)


def as_agent(value: Any) -> str:
    if value not in AGENTS:
        hint = nearest(str(value), AGENTS)
        raise UsageError(f"{shown(value)} is not an agent that ramherd knows", hint=hint)
    return str(value)


def as_words(value: Any) -> tuple[str, ...]:
    """A list, or a line as a shell would split it."""
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:
        raise UsageError(f"{value!r} has {str(error).lower()}") from None
    if not isinstance(words, list):
        raise UsageError(f"{value!r} is neither a list of texts nor a line of words")
    return tuple(as_text(word) for word in words)


def as_switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{shown(value)} is neither true nor false")
    return value


def parse_text(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{value!r} is not a text")
    return value


def parse_switch(value: Any) -> bool:
    """Of a file, a variable or a flag; `as_switch` is of a file alone."""
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False}
    switch = words.get(str(value).lower())
    if switch is None:
        raise UsageError(f"{value!r} is neither true nor false")
    return switch
