"""Parameters of requests: checked and described by the same definitions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ramherd.api.request_head import HttpError
from ramherd.core.values import Schema

# SQLite integers have 64 bits.
MOST_NUMBER = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query: a text, a whole number with its bounds, or one of some words."""

    name: str
    default: str | int | None = None
    words: tuple[str, ...] = ()
    most: int | None = None

    def parse(self, text: str | None) -> Any:
        if text is None:
            return self.default
        if self.words and text not in self.words:
            raise HttpError(400, f"{self.name} is none of {', '.join(self.words)}")
        return text if self.most is None else self._parse_number(text, self.most)

    def describe(self) -> Schema:
        schema: Schema = {"type": "string"}
        if self.words:
            schema["enum"] = list(self.words)
        if self.most is not None:
            schema = {"type": "integer", "minimum": 0, "maximum": self.most}
        if self.default is not None:
            schema["default"] = self.default
        return {"name": self.name, "in": "query", "schema": schema}

    def _parse_number(self, text: str, most: int) -> int:
        if not (text.isascii() and text.isdigit()) or len(text) > 19:
            raise HttpError(400, f"{self.name} is not a whole number")
        if int(text) > most:
            raise HttpError(400, f"{self.name} is {text}, the most is {most}")
        return int(text)


def switch(name: str) -> Parameter:
    return Parameter(name, "false", words=("false", "true"))


def number(name: str, default: int | None = 0, most: int = MOST_NUMBER) -> Parameter:
    return Parameter(name, default, most=most)


@dataclass(frozen=True, slots=True)
class RequestParts:
    """The checked parts of a request."""

    path: Mapping[str, str]
    query: Mapping[str, Any]
    headers: Mapping[str, str]
    body: bytes = b""

    def is_on(self, name: str) -> bool:
        return bool(self.query[name] == "true")
