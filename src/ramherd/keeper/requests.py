"""Checks requests to the keeper before they are carried out: a wrong line must not end its runs.

Used by the keeper, so it imports only os and json.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False  # the keeper avoids the 1 MB that `typing` costs
if TYPE_CHECKING:
    from typing import Any

# The kernel limits arguments and environment to 2 MiB, JSON takes at most six times that. The
# service sends large values as the name of a file.
MOST_BYTES = 16 << 20


def parse_request(line: bytes) -> dict[str, Any]:
    """ValueError, with the cause, for a wrong request."""
    try:
        request = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(request, dict) or request.get("do") not in SHAPES:
        raise ValueError("no such request")
    shape = SHAPES[request["do"]]
    for key, is_right in shape.items():
        if key not in request or not is_right(request[key]):
            raise ValueError(f"{request['do']}: {key} is missing or wrong")
    return request


def is_text(value: Any) -> bool:
    """Whether a program can get this text: it has no NUL, and can be encoded."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def is_name(value: Any) -> bool:
    return is_text(value) and value != ""


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def is_argv(value: Any) -> bool:
    return is_texts(value) and bool(value) and value[0] != ""


def is_environment(value: Any) -> bool:
    """Layers, each over the previous one: variables (null removes one), or a part of a file."""
    return isinstance(value, list) and all(is_variables(one) or is_part(one) for one in value)


def is_variables(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return all(is_name(name) and "=" not in name for name in value) and all(
        text is None or is_text(text) for text in value.values()
    )


def is_part(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 3 or not is_name(value[0]):
        return False
    return all(type(at) is int and 0 <= at < 1 << 62 for at in value[1:]) and value[1] <= value[2]


def is_on_loss(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return all(
        isinstance(value.get(what), list)
        and all(is_texts(write) and len(write) == 2 for write in value[what])
        for what in ("thaw", "kill")
    )


def is_log(value: Any) -> bool:
    """Head and ring: an empty ring has no place for the next byte."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    return all(type(size) is int and 0 <= size < 1 << 62 for size in value) and value[1] > 0


def is_size(value: Any) -> bool:
    """Whether it can be the size of a change, which may be negative."""
    return type(value) is int and abs(value) < 1 << 62


SHAPES = {
    "spawn": {
        "run": is_name, "dir": is_name, "argv": is_argv, "cwd": is_text, "stdin": is_text,
        "env": is_environment, "join": is_texts, "on_loss": is_on_loss, "dirs": is_texts,
        "log": is_log, "fed": is_switch, "argv_file": is_text,
    },
    "feed": {"run": is_name, "stdin": is_name},
    "hang_up": {"run": is_name},
    "pass": {"run": is_name, "to": is_name, "dir": is_name, "stdin": is_name, "log": is_log},
    "close": {"run": is_name},
    "forget": {"run": is_name},
    "log_growth": {"bytes": is_size},
    "fleet": {"dirs": is_texts},
    "ping": {},
    "end": {},
}  # fmt: skip
