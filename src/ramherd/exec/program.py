"""The program of a session: started in its pen, and waited for as a shell waits for a job.

It stays in our own process group, so only the shell controls the terminal: Ctrl-C, Ctrl-\\, Ctrl-Z
and a change of size reach the program from the kernel, pipelines and scripts stay one job, and no
terminal changes hands. We leave these signals to the program, and stop when it has stopped, not
when it is asked to: it may first restore its screen.
"""

import errno
import os
import signal
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

from ramherd.system.executables import is_hidden
from ramherd.system.files import write_control
from ramherd.system.own_process import AGENT_OOM_SCORE_ADJ, set_oom_score_adj

# Sent to the group: the program handles them.
PASSED = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP}
ENDING = {signal.SIGTERM, signal.SIGHUP}


class NotStarted(NamedTuple):
    """The errno, and the step that failed with its error."""

    number: int
    what: str


class Program:
    """`status` is that of waitpid after the program has ended."""

    def __init__(self) -> None:
        self.pid = 0
        self.status: int | None = None
        self.is_ending = False
        # Signals that were ignored at our start (nohup) stay ignored.
        self.ending = {n for n in ENDING if signal.getsignal(n) is not signal.SIG_IGN}
        self.mask = signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGCHLD, *PASSED, *self.ending}
        )

    def prepare(self, argv: tuple[str, ...], env: Mapping[str, str], join: list[str]) -> None:
        """Forks a child that joins the pen: the kernel takes 2 ms for each cgroup, during which we
        do other work. The child becomes the program on `start`; if we die before, it ends.
        """
        self._report, report = os.pipe2(os.O_CLOEXEC)
        go, self._go = os.pipe2(os.O_CLOEXEC)
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._go)
            self._become(argv, env, join, go, report)
        os.close(report)
        os.close(go)
        let_go_of_pipes()

    def start(self) -> NotStarted | None:
        """Returns None when the program runs, otherwise the step that failed."""
        try:
            os.write(self._go, b"!")
        except BrokenPipeError:  # it could not join, and reports that
            pass
        os.close(self._go)
        text = os.read(self._report, 4096).decode(errors="replace")
        os.close(self._report)
        if not text:
            return None
        os.waitpid(self.pid, 0)
        number, _, what = text.partition(" ")
        return NotStarted(int(number), what)

    def _become(
        self, argv: tuple[str, ...], env: Mapping[str, str], join: list[str], go: int, report: int
    ) -> NoReturn:
        step = "prepare"
        try:
            for path in join:
                step = f"join {path}"
                write_control(path, "0")
            set_oom_score_adj(AGENT_OOM_SCORE_ADJ)
            step = f"start {argv[0]}"
            if os.read(go, 1):
                self._restore_signals()
                os.execvpe(argv[0], argv, env)
        except OSError as error:
            number = error.errno
            if number == errno.EACCES and is_hidden(argv[0], env.get("PATH", os.defpath)):
                number = errno.ENOENT
            text = f"{number} cannot {step}: {os.strerror(number or 0)}"
            os.write(report, text.encode(errors="backslashreplace")[:4000])
        finally:
            os._exit(127)

    def _restore_signals(self) -> None:
        """Signals that were ignored at our start stay ignored, except two that Python ignores."""
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)

    def next_signal(self, timeout_s: float) -> int | None:
        watched = {signal.SIGCHLD, *PASSED, *self.ending}
        found = signal.sigtimedwait(watched, timeout_s)
        return None if found is None else found.si_signo

    def pending_end(self) -> int:
        """A pending signal that tells us to end, or 0."""
        return min(signal.sigpending() & self.ending, default=0)

    def reap(self) -> None:
        """All children belong to the session: orphans become ours and are only reaped."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid != self.pid:
                continue
            if os.WIFSTOPPED(status):
                self._stop_too()
            else:
                self.status = status

    def _stop_too(self) -> None:
        """The shell sees its job stopped, and continues the whole group or only us."""
        if self.is_ending:
            return
        os.kill(os.getpid(), signal.SIGSTOP)
        os.kill(self.pid, signal.SIGCONT)


def let_go_of_pipes() -> None:
    """When the program closes its input or output, the other end must see that."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd in (0, 1):
        if not os.isatty(fd):
            os.dup2(null, fd)
    os.close(null)
