"""Where settings are written: `ramherd.toml` upwards from here, then the user's `config.toml`.

Hooks look there too, so this imports next to nothing.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROJECT_FILE = "ramherd.toml"
USER_FILE = "ramherd/config.toml"


def find_files(cwd: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Those that are there, the nearest first."""
    at, above = cwd, ""
    while at != above:
        if os.path.isfile(path := os.path.join(at, PROJECT_FILE)):
            yield path
            break
        at, above = os.path.dirname(at), at
    base = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    if os.path.isfile(path := os.path.join(base, USER_FILE)):
        yield path
