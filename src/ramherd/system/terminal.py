"""The modes of the terminal, which a killed program leaves changed: saved, and restored."""

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
        """As a shell does for a job that a signal ended, which our exit code does not show. In the
        background the terminal belongs to another process.
        """
        try:
            if self._modes is not None and os.tcgetpgrp(self._fd) == os.getpgrp():
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._modes)
        except (OSError, termios.error):
            pass
