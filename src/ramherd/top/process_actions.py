"""Ends a stray that the user has chosen, as `ramherd reap --suspect PID --yes` does."""

from contextlib import suppress

from ramherd.config.load import Config
from ramherd.core.errors import RamherdError, StoreError
from ramherd.core.procid import ProcId
from ramherd.strays.reap import Reaper
from ramherd.strays.render import render_ended, render_refused
from ramherd.top.source import open_scanner


def reap(proc: ProcId, config: Config) -> str:
    """The pid may be another process by now: the plan must have the one that the user saw."""
    scanner = open_scanner(config)
    try:
        reaper = Reaper(scanner, config["grace"], [proc.pid])
        plan = reaper.plan().plan
        if not any(row.process.id == proc for row in plan.ends):
            refused = [*render_refused(plan.refused)]
            raise RamherdError(refused[0] if refused else f"process {proc.pid} has ended already")
        reaped = reaper.reap()
        with suppress(StoreError, OSError):
            scanner.record(reaped.scan, reaped.ended_software)
        *_each, last = render_ended(reaped.ended)
        return last
    finally:
        if scanner.store is not None:
            scanner.store.close()
