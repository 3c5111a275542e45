"""The server alone: prints its address, and serves until it is interrupted."""

import argparse
import json
import signal
import sys
from pathlib import Path

from llm.server import LLM


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m llm", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes any free one")
    parser.add_argument("--scripts", type=Path, help="a JSON file: name -> list of steps")
    args = parser.parse_args()
    scripts = json.loads(args.scripts.read_text()) if args.scripts else {}
    ends = {signal.SIGINT, signal.SIGTERM}
    # Before the server's threads are there, or they would take the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    with LLM(scripts, args.port) as llm:
        print(llm.url, flush=True)
        signal.sigwait(ends)
    return 0


if __name__ == "__main__":
    sys.exit(main())
