"""The terminal's modes: a program that was killed did not put them back."""

import os
import termios


class Terminal:
    def __init__(self) -> None:
        self._modes = None
        for fd in (0, 1, 2):
            try:
                self._modes, self._fd = termios.tcgetattr(fd), fd
            except termios.error:
                continue
            return

    def restore(self) -> None:
        """As a shell does for a job that a signal ended; it cannot see that from our exit code.
        In the background the terminal belongs to another process.
        """
        try:
            if self._modes is not None and os.tcgetpgrp(self._fd) == os.getpgrp():
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._modes)
        except (OSError, termios.error):
            pass
