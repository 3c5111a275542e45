"""Where no cgroup holds a session: who belongs to it, and whether it is within its limit."""

import os

from ramherd.act.pens.polling import PollingFleet
from ramherd.core.model import PenReading, ProcId
from ramherd.exec.nouns import Session
from ramherd.exec.pen import SessionPen
from ramherd.system.procfs import read_process, read_processes


class Watcher:
    """We are the subreaper: each child of ours but the guard is the session's."""

    def __init__(self, session: Session, pen: SessionPen, guard: int) -> None:
        self._limit = session.limit_bytes
        self._run, self._guard = session.run, guard
        self.fleet = PollingFleet()
        own = read_process(os.getpid())
        if own is not None:
            self.fleet.set_keeper(own.id)
        self.pen = self.fleet.add(session.run, self._limit)
        self.pen.set_first(ProcId(*pen.record["first"]))
        self.reading = PenReading()

    def adopt(self) -> None:
        for proc in read_processes():
            if proc.ppid == os.getpid() and proc.id.pid != self._guard:
                self.fleet.set_owner(proc.id, self._run)

    def is_within_limit(self) -> bool:
        self.adopt()
        self.fleet.scan()
        self.reading = self.pen.read()
        return self._limit is None or self.reading.used_bytes <= self._limit
