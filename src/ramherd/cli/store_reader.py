"""The store for verbs that only read: also on a read-only disk, or in another user's directory."""

import sys

from ramherd.config.paths import state_path
from ramherd.store.connect import open_store_to_read
from ramherd.store.protocol import Store


def open_to_read() -> Store:
    return open_store_to_read(state_path(), warn)


def warn(text: str) -> None:
    print(f"ramherd: {text}", file=sys.stderr)
