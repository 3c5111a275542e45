"""The service's signals: an end is counted apart, so that nothing cancels its queue, and HUP asks
for new settings.
"""

import signal
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ramherd.system.signals import END_SIGNALS, Signals, catching


@dataclass
class ServiceSignals(Signals):
    ends: int = 0
    reloads: int = 0

    def receive(self, number: int, _frame: object) -> None:
        if number == signal.SIGHUP:
            self.reloads += 1
        else:
            self.ends += 1


def catching_service_signals() -> AbstractContextManager[ServiceSignals]:
    """HUP too, whatever we were started with: a service has no window that closes."""
    return catching(ServiceSignals, END_SIGNALS)
