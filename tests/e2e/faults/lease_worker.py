"""An application that asks for leases twenty times a second, and shows what it believes to have.

    lease_worker.py RUNTIME SEED BUDGET SLOT FILE

Its lease is the number SLOT (8 bytes) of FILE. It is written before a smaller lease is asked for,
and after a larger one was given, so the file never shows less than the application would use.
"""

import mmap
import random
import struct
import sys
import time
from contextlib import closing
from pathlib import Path

from ramherd.core.errors import StoreError
from ramherd.store.ledger import Ask, Ledger
from ramherd.store.owner import OwnerLock
from ramherd.system.boot_clock import read_boot_s

TICK_S = 0.05


def main() -> None:
    runtime, slot = Path(sys.argv[1]), int(sys.argv[4])
    rng, budget = random.Random(sys.argv[2]), int(sys.argv[3])
    held, troubles = 0, 0
    with (
        Path(sys.argv[5]).open("r+b") as file,
        closing(mmap.mmap(file.fileno(), 0)) as shown,
        closing(OwnerLock(runtime)) as lock,
        closing(Ledger(runtime / "ledger.db", runtime, lock.owner)) as ledger,
    ):
        ledger.file.patience_s = 0.01
        print("ready", flush=True)
        while True:
            # Runs end now and then: what they held is given back with the next question.
            granted = rng.randrange(held + 1) if rng.random() < 0.3 else held
            struct.pack_into("q", shown, 8 * slot, granted)
            wants = max(rng.randrange(budget // 2), granted)
            since_s = read_boot_s() if rng.random() < 0.5 else None
            try:
                answer = ledger.ask(Ask(wants, granted // 2, granted, since_s), budget)
                held = min(answer.lease_bytes, answer.target_bytes)
            except StoreError as error:
                held, troubles = granted, troubles + 1
                print(error, file=sys.stderr, flush=True)
            struct.pack_into("q", shown, 8 * slot, held)
            time.sleep(TICK_S)


main()
