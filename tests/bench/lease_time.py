"""How long a lease takes: p99 of 20 applications that ask again and again, on a quiet machine.

PYTHONPATH=tests python -m bench.lease_time [SECONDS]
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from integration.store.test_many_applications import PROCESSES, started

SECONDS = 12.0
ALLOWED_MS = 10.0


def measure(seconds: float) -> list[float]:
    """Milliseconds of each lease, sorted."""
    until_s = time.monotonic() + seconds
    with (
        tempfile.TemporaryDirectory(prefix="ramherd-leases-") as place,
        started(Path(place), until_s) as workers,
    ):
        times = [took_s for worker in workers for took_s in json.loads(worker.communicate()[0])]
    return sorted(1000 * took_s for took_s in times)


def main() -> int:
    load = os.getloadavg()[0]
    times = measure(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)
    p50, p99 = (times[int(share * len(times))] for share in (0.5, 0.99))
    print(
        f"{len(times)} leases of {PROCESSES} applications: median {p50:.1f} ms, p99 {p99:.1f} ms; "
        f"load before {load:.1f} on {os.cpu_count()} cores"
    )
    # On a machine that is busy with other things it is its scheduler that is measured.
    is_kept = p99 <= ALLOWED_MS or load >= (os.cpu_count() or 1)
    print(f"allowed: {ALLOWED_MS:.0f} ms: {'kept' if p99 <= ALLOWED_MS else 'EXCEEDED'}")
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
