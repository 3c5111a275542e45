"""The service's signals: an end is counted apart, so that nothing cancels its queue, and HUP asks
for new settings.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ramherd.system.signals import END_SIGNALS, catching


@dataclass
class ServiceSignals:
    fd: int = -1
    ends: int = 0
    reloads: int = 0

    def receive(self, number: int) -> None:
        if number == signal.SIGHUP:
            self.reloads += 1
        else:
            self.ends += 1


@contextmanager
def catching_service_signals() -> Iterator[ServiceSignals]:
    """HUP too, whatever we were started with: a service has no window that closes."""
    signals = ServiceSignals()
    with catching(END_SIGNALS, signals.receive) as signals.fd:
        yield signals
