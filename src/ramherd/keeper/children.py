"""The runs as children of the keeper: their start, output, input and end.

Used by the keeper, so it imports only a few modules of the standard library.
"""

from __future__ import annotations

import errno
import os
import time

from ramherd.keeper.event_loop import GONE
from ramherd.keeper.exec_child import OURS, ChildEnds, exec_program
from ramherd.keeper.log_quota import LogQuota
from ramherd.keeper.output_log import OutputLog
from ramherd.keeper.stdin_writer import StdinWriter
from ramherd.system.descendants import has_orphans
from ramherd.system.files import write_json, write_record
from ramherd.system.proc_stat import read_start_ticks
from ramherd.system.wait import WRITE

TYPE_CHECKING = False  # the keeper avoids the 1 MB that `typing` costs
if TYPE_CHECKING:
    from typing import Any

    from ramherd.keeper.event_loop import EventLoop
    from ramherd.keeper.supervisor_link import SupervisorLink

# Files of a run beside its logs.
STATUS, META = "status", "meta.json"
META_EVERY_S = 1.0
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class Child:
    """One run: its pid, the pipes of its output, and their logs."""

    def __init__(
        self, request: dict[str, Any], logs: dict[str, OutputLog], stdin: StdinWriter | None
    ) -> None:
        self.id: str = request["run"]
        self.dir: str = request["dir"]
        self.pid = GONE
        # Closes at exec, or carries the error.
        self.report = GONE
        self.pipes: dict[str, int] = {}
        # For a run that gets more than one prompt.
        self.stdin = stdin
        self.logs = logs
        self.meta_at = 0.0
        self.meta_due = False
        # How to end the run without a supervisor: files to write, then directories to remove.
        self.on_loss: dict[str, list[list[str]]] = request["on_loss"]
        self.dirs: list[str] = request["dirs"]

    def meta(self) -> dict[str, Any]:
        return {name: log.meta() for name, log in self.logs.items()}

    def write_status(self, status: dict[str, Any]) -> None:
        """Records how the run ended, for the next supervisor if this supervisor and we die."""
        path = f"{self.dir}/{STATUS}"
        try:
            write_record(path, status)
        except OSError as error:  # the supervisor still gets the message
            log_error(f"cannot write {path}: {error.strerror}")

    def write_meta(self) -> None:
        """Replaces the file, because a reader may have it open; overwrites it on a full disk."""
        path, meta = f"{self.dir}/{META}", self.meta()
        try:
            try:
                write_json(path, meta)
            except OSError as error:
                if error.errno not in NO_SPACE:
                    raise
                write_record(path, meta)
        except OSError as error:
            log_error(f"cannot write {path}: {error.strerror}")

    def write_meta_if_due(self) -> None:
        """Writes the position in the ring, for readers during the run: once a second."""
        now = time.monotonic()
        if self.meta_due and now - self.meta_at >= META_EVERY_S:
            self.meta_at = now
            self.meta_due = False
            self.write_meta()


class Children:
    """`ends` has how runs ended, until a supervisor has recorded it. Only the next supervisor reads
    it, so it is empty without `keeps_ends`.
    """

    def __init__(
        self, loop: EventLoop, link: SupervisorLink, nofile: tuple[int, int], *, keeps_ends: bool
    ) -> None:
        self._loop = loop
        self._link = link
        self._nofile = nofile
        self._keeps_ends = keeps_ends
        self.runs: dict[str, Child] = {}
        self.ends: dict[str, dict[str, Any]] = {}
        self.quota = LogQuota()

    def set_log_growth(self, size: int) -> None:
        """Within a second, `meta.json` has the bytes that were dropped."""
        self.quota.set_growth(size)
        for run in self.runs.values():
            run.meta_due = run.meta_due or any(log.is_partial for log in run.logs.values())

    def start(self, request: dict[str, Any]) -> None:
        """Uses fork, not vfork with a wrapper: 1.7 ms, and each step that fails has a message."""
        if request["run"] in self.runs:
            raise ValueError(f"{request['run']} runs already")
        opened: list[int] = []
        logs: dict[str, OutputLog] = {}
        writer: StdinWriter | None = None
        try:
            open_logs(request, logs, self.quota)
            if request["fed"]:
                stdin, end = os.pipe2(os.O_CLOEXEC)
                opened.append(stdin)
                writer = StdinWriter(end)
                writer.add(request["stdin"])
            else:
                opened.append(os.open(request["stdin"] or os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            for _pipe in range(3):
                opened += os.pipe2(os.O_CLOEXEC)
            pid = os.fork()
        except OSError as error:
            for fd in opened:
                os.close(fd)
            close_all(logs)
            if writer is not None:
                writer.close()
            self._refuse(request["run"], error)
            return
        stdin, out, out_end, err, err_end, report, report_end = opened
        ends = ChildEnds(stdin, out_end, err_end, report_end)
        if pid == 0:
            exec_program(request, ends, self._nofile)
        ends.close()
        run = Child(request, logs, writer)
        run.pid, run.report, run.pipes = pid, report, {"out": out, "err": err}
        self._watch(run)

    def _refuse(self, run: str, error: OSError) -> None:
        """No part of the job has run yet: the failure is ours, or the machine's."""
        where = f" ({error.filename})" if error.filename else ""
        what = f"cannot prepare a run: {error.strerror}{where}"
        self._send_end("refused", run, errno=error.errno, what=what, is_ours=True)

    def _watch(self, run: Child) -> None:
        self.runs[run.id] = run
        self._loop.watch(run.report, lambda: self._finish_start(run))
        for name, pipe in run.pipes.items():
            os.set_blocking(pipe, False)
            self._loop.watch(pipe, lambda name=name: self._log_output(run, name))  # type: ignore[misc]
        self._write_stdin(run)

    def _write_stdin(self, run: Child) -> None:
        """Writes to the program as fast as it reads; closes the pipe after the last byte."""
        stdin = run.stdin
        if stdin is None or stdin.pipe == GONE:
            return
        if stdin.advance():
            if not self._loop.is_watched(stdin.pipe):
                self._loop.watch(stdin.pipe, lambda: self._write_stdin(run), WRITE)
            return
        self._loop.unwatch(stdin.pipe)
        if stdin.is_last:
            stdin.close()

    def add_stdin(self, request: dict[str, Any]) -> None:
        run = self.runs.get(request["run"])
        if run is not None and run.stdin is not None:
            try:
                run.stdin.add(request["stdin"])
            except OSError as error:  # the supervisor notices the missing answer
                log_error(f"cannot read {request['stdin']}: {error.strerror}")
            self._write_stdin(run)

    def close_stdin(self, run: Child | None) -> None:
        if run is not None and run.stdin is not None:
            run.stdin.is_last = True
            self._write_stdin(run)

    def reassign(self, request: dict[str, Any]) -> None:
        """Gives the process of one run to another run: output until now belongs to the first run,
        output after the next prompt to the other.
        """
        run = self.runs.get(request["run"])
        logs: dict[str, OutputLog] = {}
        try:
            if run is None or run.pid == GONE or run.stdin is None or run.stdin.is_last:
                raise OSError(errno.ESRCH, "its warm process is gone")
            open_logs(request, logs, self.quota)
            run.stdin.add(request["stdin"])
        except OSError as error:
            close_all(logs)
            self._refuse(request["to"], error)
            return
        self._drain(run)
        run.write_meta()
        close_all(run.logs)
        del self.runs[run.id]
        run.id, run.dir, run.logs = request["to"], request["dir"], logs
        run.meta_due = False
        self.runs[run.id] = run
        self._send_started(run)
        self._write_stdin(run)

    def _finish_start(self, run: Child) -> bool:
        """The report pipe closes at exec; any text in it is an error."""
        text = os.read(run.report, 4096)
        self._loop.close(run.report)
        run.report = GONE
        if not text:
            self._send_started(run)
            return True
        number, whose, what = text.decode(errors="replace").split(" ", 2)
        self._drop(run)
        self._send_end("refused", run.id, errno=int(number), what=what, is_ours=whose == OURS)
        return False

    def _log_output(self, run: Child, name: str) -> None:
        log = run.logs[name]
        if not log.drain(run.pipes[name]):
            self._loop.close(run.pipes.pop(name))
        run.meta_due = run.meta_due or log.is_partial
        run.write_meta_if_due()

    def reap(self) -> None:
        """Reaps all children: the ends of runs are reported, those of adopted children are not."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            run = next((run for run in self.runs.values() if run.pid == pid), None)
            if run is not None:
                self._record_exit(run, os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10)

    def _record_exit(self, run: Child, code: int, largest_bytes: int) -> None:
        if run.report != GONE and not self._finish_start(run):
            return
        run.pid = GONE
        # Before `status` is written: another run may wait for it, and then leave a process behind.
        left = has_orphans({other.pid for other in self.runs.values()})
        how = {"code": code if code >= 0 else None, "signal": -code if code < 0 else None}
        run.write_status({**how, "at_s": time.time()})
        # Nothing was dropped, so the rest can be read without the meta file.
        closed = self._drain(run) and not run.meta_due
        if closed:
            # Before the message: the supervisor then removes that directory, which would delay us.
            run.write_meta()
            self._drop(run)
        self._send_end(
            "exited", run.id, **how, largest_bytes=largest_bytes, closed=closed, left=left
        )

    def _drain(self, run: Child) -> bool:
        """Returns whether the output is complete: usually no other process holds the pipes."""
        for name, pipe in list(run.pipes.items()):
            if not run.logs[name].drain(pipe):
                self._loop.close(run.pipes.pop(name))
            run.meta_due = run.meta_due or run.logs[name].is_partial
        return not run.pipes

    def close(self, name: str) -> None:
        """The run has ended and its pen is empty: the rest of its output goes into its logs."""
        run = self.runs.get(name)
        if run is None:
            return
        for stream, pipe in run.pipes.items():
            run.logs[stream].drain(pipe)
        run.write_meta()
        self._drop(run)
        if run.id in self.ends:
            self.ends[run.id]["closed"] = True
        self._link.send("closed", run.id, **run.meta())

    def _drop(self, run: Child) -> None:
        for fd in run.pipes.values():
            self._loop.close(fd)
        close_all(run.logs)
        if run.stdin is not None:
            self._loop.unwatch(run.stdin.pipe)
            run.stdin.close()
        self.runs.pop(run.id, None)

    def send_all(self) -> None:
        """Sends the complete state to a new supervisor."""
        self._link.send("here", "", runs=[*self.runs, *self.ends], pid=os.getpid(), files=True)
        for run in list(self.runs.values()):
            if run.report == GONE and run.pid != GONE:
                self._send_started(run)
        for run_id, end in list(self.ends.items()):
            self._link.send(run=run_id, **end)

    def _send_started(self, run: Child) -> None:
        ticks = read_start_ticks(run.pid) or 0
        self._link.send("started", run.id, pid=run.pid, start_ticks=ticks)

    def _send_end(self, did: str, run: str, **values: Any) -> None:
        if self._keeps_ends:
            self.ends[run] = {"did": did, **values}
        self._link.send(did, run, **values)


def open_logs(request: dict[str, Any], logs: dict[str, OutputLog], quota: LogQuota) -> None:
    """The supervisor has made the directory, with space for the records written at the end of a
    run.
    """
    head, ring = request["log"]
    for name in ("out", "err"):
        logs[name] = OutputLog(f"{request['dir']}/{name}", head, ring, quota)


def close_all(logs: dict[str, OutputLog]) -> None:
    for log in logs.values():
        log.close()


def log_error(text: str) -> None:
    """Writes to keeper.err, if the disk has space."""
    try:
        os.write(2, f"{text}\n".encode())
    except OSError:
        pass
