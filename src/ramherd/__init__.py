"""ramherd runs as many coding agents as the memory holds, and never one more.

Kept free of imports: the keeper and the hook load this file, and their memory counts. What a
script asks for is loaded when it does.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramherd.client.client import Client as Client
    from ramherd.client.client import run as run

__version__ = "0.1.0"
_OFFERED = {"Client": "ramherd.client.client", "run": "ramherd.client.client"}


def __getattr__(name: str) -> object:
    if name not in _OFFERED:
        raise AttributeError(f"module 'ramherd' has no attribute {name!r}")
    return getattr(__import__(_OFFERED[name], fromlist=[name]), name)
