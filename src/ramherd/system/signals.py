"""Ctrl-C, TERM and a closed window, as a number that the loop reads and a pipe that wakes it."""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Signals:
    fd: int
    count: int = 0

    def receive(self, _number: int, _frame: object) -> None:
        self.count += 1


Received = TypeVar("Received", bound=Signals)


def catching_signals() -> AbstractContextManager[Signals]:
    """A signal that we were started to ignore (nohup, a shell's `&`) stays ignored."""
    wanted = [one for one in END_SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]
    return catching(Signals, wanted)


@contextmanager
def catching(kind: type[Received], numbers: Iterable[signal.Signals]) -> Iterator[Received]:
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signals = kind(read)
    old_wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    old = {number: signal.signal(number, signals.receive) for number in numbers}
    try:
        yield signals
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(old_wakeup)
        os.close(read)
        os.close(write)
