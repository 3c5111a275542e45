"""A request in any dialect, as far as scripts ask for it, and the reply that a dialect writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """One part of a conversation. `who`: user, model, call (a tool's), result (of one)."""

    who: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: the conversation so far, and the tools that the model may call, by name.

    `schema` is what a reply in JSON has to look like, where one is asked for.
    """

    talk: Sequence[Said]
    tools: Sequence[str] = ()
    model: str = ""
    stream: bool = True
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says and calls. `pause_s` is between the first half of it and the rest."""

    text: str = ""
    calls: Sequence[Call] = ()
    tokens_in: int = 100
    tokens_out: int = 10
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Talk:
    """A request as it was recorded.

    `kind` is main (the prompt had a script), subagent (a script that a parent's step handed on),
    side (no tools were offered: titles, summaries, checks) or plain (no script in it).
    """

    api: str
    path: str
    kind: str
    script: str
    step: int
    status: int
    at_s: float
    asked: Asked
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    def texts(self, who: str) -> list[str]:
        return [said.text for said in self.asked.talk if said.who == who]
