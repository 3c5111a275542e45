"""The program of a session: started in its pen, and waited for as a shell waits for a job.

It stays in our own process group. So the terminal is the business of the shell alone: Ctrl-C,
Ctrl-\\, Ctrl-Z and a change of size reach the program from the kernel, pipelines and scripts stay
one job, and no terminal is ever taken or given. We let those signals pass, and stop when the
program has stopped, not when it was asked to: it may first want to tidy its screen.
"""

import errno
import os
import signal
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

from ramherd.system.executables import is_hidden
from ramherd.system.files import write_control
from ramherd.system.own_process import AGENT_OOM_SCORE_ADJ, set_oom_score_adj

# The group's, not ours: the program answers them.
PASSED = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP}
ENDING = {signal.SIGTERM, signal.SIGHUP}


class NotStarted(NamedTuple):
    """The errno, and which step failed how."""

    number: int
    what: str


class Program:
    """`status` is that of waitpid once the program has ended."""

    def __init__(self) -> None:
        self.pid = 0
        self.status: int | None = None
        self.is_ending = False
        # What we were started to ignore (nohup) stays ignored.
        self.ending = {n for n in ENDING if signal.getsignal(n) is not signal.SIG_IGN}
        self.mask = signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGCHLD, *PASSED, *self.ending}
        )

    def prepare(self, argv: tuple[str, ...], env: Mapping[str, str], join: list[str]) -> None:
        """A child that joins the pen: the kernel takes 2 ms for each cgroup, in which we can
        do something else. It becomes the program when told to; if we die before, it ends.
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
        """Returns when the program runs, or which step did not work."""
        try:
            os.write(self._go, b"!")
        except BrokenPipeError:  # it could not join, and says so
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
        """What was ignored when we started stays so, but for two that Python ignores."""
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
        """A signal that tells us to end and was not received yet, or 0."""
        return min(signal.sigpending() & self.ending, default=0)

    def reap(self) -> None:
        """All children are the session's: what lost its parent becomes ours and just goes."""
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
    """When the program closes its input or output, the other end is to see that."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd in (0, 1):
        if not os.isatty(fd):
            os.dup2(null, fd)
    os.close(null)
