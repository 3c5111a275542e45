"""The version of the API, for both sides of it: what is in a response, and what a client expects.

A client ignores fields that it does not know and takes missing ones for unknown, so that most
versions can talk. `API` is raised when a path, a parameter or a field is added; a change that older
clients cannot bear gets another prefix than /v1.
"""

from ramherd import __version__

# 1 had no version in its responses.
API = 2
FIELD = "Ramherd-Api"
HEADERS = {
    FIELD: str(API),
    "Ramherd-Version": __version__,
    # Nothing of this is for a browser to guess about, or for its cache.
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def parse_api(text: str | None) -> int:
    """The version of a service, by its response."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else 1
