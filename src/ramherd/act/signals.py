"""Ctrl-C, TERM and a closed window, as a number that the loop reads and a pipe that wakes it."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Signals:
    fd: int
    count: int = 0

    def note(self, _number: int, _frame: object) -> None:
        self.count += 1


@contextmanager
def catching_signals() -> Iterator[Signals]:
    """A signal that we were started to ignore (nohup, a shell's `&`) stays ignored."""
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signals = Signals(read)
    old_wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    old = {
        number: signal.signal(number, signals.note)
        for number in END_SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield signals
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(old_wakeup)
        os.close(read)
        os.close(write)
