"""Whether an error's text speaks of load and limits, or of something else."""

import re

from ramherd.agents.events import TEXT_LENGTH, Failure, Overload

LOAD = re.compile(
    r"\b(429|503|529)\b|overload|rate.?limit|too many requests|resource.?exhausted|quota"
    r"|usage limit|at capacity",
    re.IGNORECASE,
)


def is_overload(text: str) -> bool:
    return LOAD.search(text) is not None


def failures(text: str) -> list[Overload | Failure]:
    """An agent that gave up; for load, both are said."""
    failure = Failure(clip(text) or "the agent gave no reason")
    return [Overload(failure.text), failure] if is_overload(text) else [failure]


def clip(text: str) -> str:
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 3] + "..."
