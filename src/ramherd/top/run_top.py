"""Starts the application in a child process: whatever ends the child, a kill included, the parent
restores the terminal.
"""

import os
import signal
import sys
from collections.abc import Callable

from ramherd.core.errors import RamherdError
from ramherd.system.terminal import Terminal

# The main screen, the cursor, line wrapping; no mouse, paste, focus or keyboard reports.
RESET = (
    "\x1b[?1049l\x1b[?25h\x1b[?7h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l"
    "\x1b[?2004l\x1b[?1004l\x1b[?2048l\x1b[<u\x1b[0m"
)
FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def run_guarded(run: Callable[[], int]) -> int:
    """Returns the exit code of `run`, which the child calls."""
    terminal = Terminal()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        return run()
    code = await_child(pid)
    if code >= 0:
        return code
    terminal.restore()
    os.write(2, RESET.encode())
    name = signal.Signals(-code).name
    raise RamherdError(f"the screen was ended by {name}; runs and jobs are not affected")


def await_child(pid: int) -> int:
    """Its exit code; negative if a signal ended it. Ctrl-C in the terminal is for the child."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in FORWARDED:
        signal.signal(number, lambda number, _frame: os.kill(pid, number))
    _pid, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def run_app() -> int:
    """Imported here: Textual takes 22 MB, which the parent does not need."""
    from ramherd.top.app import TopApp  # noqa: PLC0415
    from ramherd.top.source import TopSource, load_top_config  # noqa: PLC0415

    config = load_top_config()
    app = TopApp(TopSource(config), config)
    app.quit_on_signals()
    app.run()
    if app.error is not None:
        raise app.error
    return 0
