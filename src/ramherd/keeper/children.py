"""The keeper's runs: how they start, what they print and are fed, and how they end."""

from __future__ import annotations

import errno
import os
import time

from ramherd.keeper.adoption_socket import GONE
from ramherd.keeper.exec_child import Ends, become
from ramherd.keeper.output_log import Log
from ramherd.keeper.run import Run, say
from ramherd.keeper.stdin_writer import Feed
from ramherd.system.descendants import has_orphans
from ramherd.system.proc_stat import read_start_ticks
from ramherd.system.wait import READ, WRITE, Poller

TYPE_CHECKING = False  # the keeper does without the 1 MB that `typing` costs
if TYPE_CHECKING:
    from typing import Any

META_EVERY_S = 1.0


class Tending:
    def __init__(self, nofile: tuple[int, int]) -> None:
        self.runs: dict[str, Run] = {}
        # How runs ended, until a supervisor has it on record. Only the next one asks for it.
        self.ends: dict[str, dict[str, Any]] = {}
        self.nofile = nofile
        self.poller = Poller()
        self.watched: dict[int, tuple[str, Run | None]] = {}

    def tell(self, did: str, run: str, **values: Any) -> None:
        raise NotImplementedError

    def tell_end(self, did: str, run: str, **values: Any) -> None:
        raise NotImplementedError

    def watch(self, fd: int, what: str, run: Run | None = None, events: int = READ) -> None:
        self.watched[fd] = (what, run)
        self.poller.add(fd, events)

    def unwatch(self, fd: int) -> None:
        """And close it: from now on the number may be another run's."""
        del self.watched[fd]
        self.poller.remove(fd)
        os.close(fd)

    def spawn(self, request: dict[str, Any]) -> None:
        """Fork, not vfork with a wrapper: 1.7 ms, and each step that fails is told apart."""
        opened: list[int] = []
        logs: dict[str, Log] = {}
        feed: Feed | None = None
        try:
            os.makedirs(f"{request['dir']}/tmp", 0o700, exist_ok=True)
            open_logs(request, logs)
            if request["fed"]:
                stdin, end = os.pipe2(os.O_CLOEXEC)
                opened.append(stdin)
                feed = Feed(end)
                feed.add(request["stdin"])
            else:
                opened.append(os.open(request["stdin"] or os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            for _pipe in range(3):
                opened += os.pipe2(os.O_CLOEXEC)
            pid = os.fork()
        except OSError as error:
            for fd in opened:
                os.close(fd)
            for log in logs.values():
                log.close()
            if feed is not None:
                feed.close()
            self.refuse(request["run"], error)
            return
        stdin, out, out_end, err, err_end, report, report_end = opened
        ends = Ends(stdin, out_end, err_end, report_end)
        if pid == 0:
            become(request, ends, self.nofile)
        ends.close()
        run = Run(request, logs)
        run.pid, run.report, run.pipes = pid, report, {"out": out, "err": err}
        run.feed = feed
        self.take(run)

    def refuse(self, run: str, error: OSError) -> None:
        self.tell_end("refused", run, errno=error.errno, what=f"cannot start: {error}")

    def take(self, run: Run) -> None:
        self.runs[run.id] = run
        self.watch(run.report, "report", run)
        for name, pipe in run.pipes.items():
            os.set_blocking(pipe, False)
            self.watch(pipe, name, run)
        self.feed(run)

    def feed(self, run: Run) -> None:
        """Written to the program as fast as it reads; closed after the last of it."""
        feed = run.feed
        if feed is None or feed.pipe == GONE:
            return
        if feed.advance():
            if feed.pipe not in self.watched:
                self.watch(feed.pipe, "feed", run, WRITE)
            return
        if self.watched.pop(feed.pipe, None) is not None:
            self.poller.remove(feed.pipe)
        if feed.is_last:
            feed.close()

    def feed_more(self, request: dict[str, Any]) -> None:
        run = self.runs.get(request["run"])
        if run is not None and run.feed is not None:
            try:
                run.feed.add(request["stdin"])
            except OSError as error:  # what is not asked is not answered, and that is noticed
                say(f"cannot read {request['stdin']}: {error.strerror}")
            self.feed(run)

    def hang_up(self, run: Run | None) -> None:
        if run is not None and run.feed is not None:
            run.feed.is_last = True
            self.feed(run)

    def pass_on(self, request: dict[str, Any]) -> None:
        """The process of one run is another's from now on: what it printed until now is the
        first one's, what it prints when it is asked again the other's.
        """
        run = self.runs.get(request["run"])
        logs: dict[str, Log] = {}
        try:
            if run is None or run.pid == GONE or run.feed is None or run.feed.is_last:
                raise OSError(errno.ESRCH, "its warm process is gone")
            open_logs(request, logs)
            run.feed.add(request["stdin"])
        except OSError as error:
            for log in logs.values():
                log.close()
            self.refuse(request["to"], error)
            return
        self.drain_all(run)
        run.write("meta.json", run.meta())
        for log in run.logs.values():
            log.close()
        del self.runs[run.id]
        run.id, run.dir, run.logs = request["to"], request["dir"], logs
        run.meta_due = False
        self.runs[run.id] = run
        self.tell_started(run)
        self.feed(run)

    def settle_start(self, run: Run) -> bool:
        """The report pipe closes at exec; what stands in it before is an error."""
        text = os.read(run.report, 4096)
        self.unwatch(run.report)
        run.report = GONE
        if not text:
            self.tell_started(run)
            return True
        number, _, what = text.decode(errors="replace").partition(" ")
        self.forget(run)
        self.tell_end("refused", run.id, errno=int(number), what=what)
        return False

    def tell_started(self, run: Run) -> None:
        self.tell("started", run.id, pid=run.pid, start_ticks=read_start_ticks(run.pid) or 0)

    def drain(self, run: Run, name: str) -> None:
        log = run.logs[name]
        if not log.drain(run.pipes[name]):
            self.unwatch(run.pipes.pop(name))
        run.meta_due = run.meta_due or log.wrapped
        self.note_meta(run)

    def note_meta(self, run: Run) -> None:
        """Where the ring stands, for those who read while it is written: once a second."""
        now = time.monotonic()
        if run.meta_due and now - run.meta_at >= META_EVERY_S:
            run.meta_at = now
            run.meta_due = False
            run.write("meta.json", run.meta())

    def reap(self) -> None:
        """All children are ours to reap: known ones are told of, adopted ones just go."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            run = next((run for run in self.runs.values() if run.pid == pid), None)
            if run is not None:
                self.note_exit(run, os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10)

    def note_exit(self, run: Run, code: int, largest_bytes: int) -> None:
        if run.report != GONE and not self.settle_start(run):
            return
        run.pid = GONE
        how = {"code": code if code >= 0 else None, "signal": -code if code < 0 else None}
        run.write("status", {**how, "at_s": time.time()})
        # Nothing was dropped, so nobody needs the meta file to read the rest.
        closed = self.drain_all(run) and not run.meta_due
        if closed:
            # Before it is told: whoever hears it tidies that directory up, and we would wait.
            run.write("meta.json", run.meta())
            self.forget(run)
        left = has_orphans({other.pid for other in self.runs.values()})
        self.tell_end(
            "exited", run.id, **how, largest_bytes=largest_bytes, closed=closed, left=left
        )

    def drain_all(self, run: Run) -> bool:
        """Mostly nobody else holds the pipes: then its output is complete, and nobody need ask."""
        for name, pipe in list(run.pipes.items()):
            if not run.logs[name].drain(pipe):
                self.unwatch(run.pipes.pop(name))
            run.meta_due = run.meta_due or run.logs[name].wrapped or run.logs[name].lost > 0
        return not run.pipes

    def close(self, name: str) -> None:
        """The run is over and its pen empty: keep the last of its output and let it go."""
        run = self.runs.get(name)
        if run is None:
            return
        for stream, pipe in run.pipes.items():
            run.logs[stream].drain(pipe)
        run.write("meta.json", run.meta())
        self.forget(run)
        if run.id in self.ends:
            self.ends[run.id]["closed"] = True
        self.tell("closed", run.id, **run.meta())

    def forget(self, run: Run) -> None:
        for fd in run.pipes.values():
            self.unwatch(fd)
        for log in run.logs.values():
            log.close()
        if run.feed is not None:
            if self.watched.pop(run.feed.pipe, None) is not None:
                self.poller.remove(run.feed.pipe)
            run.feed.close()
        self.runs.pop(run.id, None)


def open_logs(request: dict[str, Any], logs: dict[str, Log]) -> None:
    for name in ("out", "err"):
        logs[name] = Log(f"{request['dir']}/{name}", *request["log"])
