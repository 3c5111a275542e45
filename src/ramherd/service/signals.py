"""The service's signals: an end is counted apart, so that nothing cancels its queue, and HUP asks
for new settings.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ramherd.act.signals import Signals


@dataclass
class ServiceSignals(Signals):
    ends: int = 0
    reloads: int = 0

    def note(self, number: int, _frame: object) -> None:
        if number == signal.SIGHUP:
            self.reloads += 1
        else:
            self.ends += 1


@contextmanager
def catching_service_signals() -> Iterator[ServiceSignals]:
    """HUP too, whatever we were started with: a service has no window that closes."""
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signals = ServiceSignals(read)
    old_wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    old = {number: signal.signal(number, signals.note) for number in numbers}
    try:
        yield signals
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(old_wakeup)
        os.close(read)
        os.close(write)
