"""One application that takes and gives leases at random, and notes how long each took."""

import json
import random
import sys
import time
from contextlib import closing
from pathlib import Path

from ramherd.store.ledger import Ask, Ledger
from ramherd.store.owner import OwnerLock


def main() -> None:
    runtime, seed, budget = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    until_s = float(sys.argv[4])
    rng = random.Random(seed)
    times: list[float] = []
    granted = 0
    with (
        closing(OwnerLock(runtime)) as lock,
        closing(Ledger(runtime / "ledger.db", runtime, lock.owner)) as ledger,
    ):
        print("ready", flush=True)
        while time.monotonic() < until_s:
            wants = rng.randrange(budget // 2)
            since = time.monotonic() if rng.random() < 0.5 else None
            started = time.perf_counter()
            answer = ledger.ask(Ask(wants, granted // 2, granted, since), budget)
            times.append(time.perf_counter() - started)
            assert answer.lease_bytes <= budget
            # Runs were granted some of it; they give it back one by one.
            granted = rng.randrange(min(answer.lease_bytes, answer.target_bytes) + 1)
            time.sleep(rng.random() * 0.1)
    print(json.dumps(times))


main()
