"""Ctrl-C, TERM and a closed window, as a number that the loop reads and a pipe to wake it."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Signals:
    """`fd` becomes readable with each signal; `count` is the number of signals to end."""

    fd: int
    count: int = 0

    def receive(self, _number: int) -> None:
        self.count += 1


@contextmanager
def catching_signals() -> Iterator[Signals]:
    """A signal that was ignored at our start (nohup, a shell's `&`) stays ignored."""
    caught = [one for one in END_SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]
    signals = Signals(-1)
    with catching(caught, signals.receive) as signals.fd:
        yield signals


@contextmanager
def catching(numbers: Iterable[signal.Signals], receive: Callable[[int], None]) -> Iterator[int]:
    """A descriptor that becomes readable with each of these signals."""
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    old_wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    old = {number: signal.signal(number, lambda one, _frame: receive(one)) for number in numbers}
    try:
        yield read
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(old_wakeup)
        os.close(read)
        os.close(write)
