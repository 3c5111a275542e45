"""The service's signals: an end is counted separately, so that it does not cancel the queue, and
HUP reloads the settings.
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
    """Also catches HUP if it was ignored at our start: a service has no terminal that closes."""
    signals = ServiceSignals()
    with catching(END_SIGNALS, signals.receive) as signals.fd:
        yield signals
