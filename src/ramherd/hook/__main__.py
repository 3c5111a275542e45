"""The entry point. Inside a run of ramherd the governor decides, and the hook does nothing."""

from __future__ import annotations

import os
import sys


def main() -> None:
    if not os.environ.get("RAMHERD_RUN"):
        from ramherd.hook.main import run  # noqa: PLC0415 - not needed inside a run

        run(sys.argv[1:])
    # Nothing is buffered, and tearing down the interpreter takes 5 ms.
    os._exit(0)


if __name__ == "__main__":
    main()
