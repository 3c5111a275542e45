"""WorktreeCleanup of jobs that have ended: what nobody has changed is removed, the rest stays.

git takes seconds for a large one, so a thread asks it. What a dying service has not come to is in
the store: the next one does.
"""

import threading
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from subprocess import SubprocessError

from ramherd.core.errors import RamherdError
from ramherd.core.model import Job
from ramherd.system.wait import clear_event, open_event, set_event


class WorktreeCleanup:
    def __init__(self) -> None:
        # Becomes readable when one was checked; there is none before the first.
        self.fd = -1
        self._todo: SimpleQueue[Job] = SimpleQueue()
        self._checked: SimpleQueue[tuple[Job, str | None]] = SimpleQueue()
        self._open: set[str] = set()

    def add(self, job: Job) -> None:
        if self.fd < 0:
            self.fd = open_event()
            threading.Thread(target=self._check_all, daemon=True).start()
        self._open.add(job.id)
        self._todo.put(job)

    def is_busy_with(self, job: Job) -> bool:
        """A job that is tried again waits: its worktree may be on its way out."""
        return job.id in self._open

    def _check_all(self) -> None:
        from ramherd.act.worktrees.removal import remove_unchanged  # noqa: PLC0415 - for these only

        while True:
            job = self._todo.get()
            try:
                tree = remove_unchanged([job]).get(job.id)
            except (OSError, RamherdError, SubprocessError):  # what cannot be looked at stays
                tree = job.brief.tree if job.brief is not None else None
            self._checked.put((job, tree.path if tree is not None else None))
            set_event(self.fd)

    def receive(self) -> Iterator[tuple[Job, str | None]]:
        """Jobs whose worktrees were checked, and the path of each that stays."""
        if self.fd >= 0:
            clear_event(self.fd)
        with suppress(Empty):
            while True:
                job, path = self._checked.get_nowait()
                self._open.discard(job.id)
                yield job, path


def has_tree(job: Job) -> bool:
    return job.brief is not None and job.brief.tree is not None
