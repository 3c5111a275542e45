"""The version of the API, sent in each response and checked by clients.

A client ignores fields that it does not recognize and treats missing fields as unknown, so most
versions work together. `API` is raised when a path, a parameter or a field is added. A change that
breaks older clients gets a new prefix instead of /v1.
"""

from ramherd import __version__

# Responses of version 1 did not have a version.
API = 2
FIELD = "Ramherd-Api"
HEADERS = {
    FIELD: str(API),
    "Ramherd-Version": __version__,
    # Browsers must neither guess the content type nor cache a response.
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def parse_api(text: str | None) -> int:
    """The API version of a service, from its response."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else 1
