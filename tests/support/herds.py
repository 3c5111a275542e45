"""Herds on a made-up machine, and what came of them."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramherd.core.model import Event, Job, JobState
from ramherd.core.units import MIB
from ramherd.store.ledger import Ledger
from ramherd.store.sqlite import SqliteStore
from support.fakes import EXIT_S, OWNER, FakeFleet, FakeHerd, FakeShow, make_herd, make_rules
from support.make import job


@dataclass
class Ran:
    herd: FakeHerd
    fleet: FakeFleet
    show: FakeShow

    @property
    def states(self) -> Counter[JobState]:
        return +self.herd.queue.counts

    def count(self, kind: str) -> int:
        return len(self.names(kind))

    def names(self, kind: str) -> list[str]:
        return [name for one, name in self.show.events if one == kind]

    def event(self, kind: str, job: str) -> Event:
        return next(one for one in self.show.full if (one.kind, one.job) == (kind, job))


Run = Callable[..., Ran]


@contextmanager
def herds_at(path: Path) -> Iterator[Run]:
    """Runs these jobs to their end; runs last two seconds."""
    with (
        closing(SqliteStore(path / "ramherd.db")) as store,
        closing(Ledger(path / "ledger.db", path, OWNER)) as ledger,
    ):

        def run(
            jobs: list[Job],
            *,
            uses: Callable[[int], int] = lambda _n: MIB,
            grows: Callable[[int], tuple[float, int]] = lambda _n: (0.0, 0),
            lasts_s: float = EXIT_S,
            interrupt_at_s: tuple[float, ...] = (),
            refuse_until_s: float = 0.0,
            meanwhile: Callable[[float], None] = lambda _s: None,
            begin: Callable[[Ran], None] = lambda _ran: None,
            **rules: Any,
        ) -> Ran:
            herd, fleet, show = make_herd(store, ledger, path / "runs", jobs, make_rules(**rules))
            herd.interrupt_at_s, fleet.refuse_until_s = interrupt_at_s, refuse_until_s
            fleet.uses, fleet.grows, fleet.lasts_s = uses, grows, lasts_s
            herd.meanwhile = meanwhile
            ran = Ran(herd, fleet, show)
            begin(ran)
            herd.loop.run()
            return ran

        yield run


def jobs_of(number: int, **changes: Any) -> list[Job]:
    return [job(f"j{n}", seq=n, **{"memory": 10 * MIB, **changes}) for n in range(1, number + 1)]
