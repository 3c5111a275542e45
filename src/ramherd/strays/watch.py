"""One look of `ramherd watch`: scans the machine, records the census, and finds new alerts."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ramherd.act.alert_commands import AlertCommands
from ramherd.act.desktop_notice import send_notice
from ramherd.core.census_row import Census, CensusRow, CensusTotal
from ramherd.core.model import Event, Reason, Why
from ramherd.store.census import (
    KEEP_S,
    read_census,
    read_live_rows,
    read_told,
    record_census,
    set_told,
)
from ramherd.store.events import add_event
from ramherd.store.protocol import Store
from ramherd.strays import ancestry
from ramherd.strays.judge.census_rows import end_rows, next_census, sum_up
from ramherd.strays.judge.watch_alerts import WatchAlert, next_alerts
from ramherd.strays.nouns import Kind, PsRow
from ramherd.strays.render_census import render_alert
from ramherd.strays.scan import Scan, Scanner
from ramherd.system.procfs import read_meminfo, read_variable

RUN_VARIABLE = "RAMHERD_RUN"
ALERT_S = 10.0
POLL_S = 0.02


class WatchScan(NamedTuple):
    rows: list[CensusRow]
    total: CensusTotal
    alerts: list[WatchAlert]


@dataclass
class Watcher:
    """Without a store nothing is recorded, and each scan sends its alerts again."""

    scanner: Scanner

    def scan(self) -> WatchScan:
        scan = self.scanner.scan()
        store, place = self.scanner.store, ancestry.read_place()
        old = {} if store is None else read_live_rows(store, place)
        seen = [row for row in scan.rows if row.kind is not Kind.RAMHERD]
        rows = next_census(seen, scan.scene, read_runs(seen), old)
        total = sum_up(seen, scan.scene.at_s, read_used_percent())
        if store is None:
            return WatchScan(rows, total, self.find_alerts(rows, total, scan, {})[1])
        # One transaction: of two looks at the same time, one sends an alert.
        store.begin()
        told = read_told(store)
        hold, alerts = self.find_alerts(rows, total, scan, told)
        set_told(store, told, hold)
        record_census(store, place, rows, end_rows(seen, scan.scene, old), total)
        for alert in alerts:
            add_event(store, event_of(alert, total.at_s))
        store.commit()
        self.scanner.record(scan)
        return WatchScan(rows, total, alerts)

    def find_alerts(
        self, rows: list[CensusRow], total: CensusTotal, scan: Scan, told: Mapping[str, float]
    ) -> tuple[dict[str, float], list[WatchAlert]]:
        hold, alerts = next_alerts(rows, total, scan.scene, told, self.scanner.policy)
        return dict(hold), alerts


def read_runs(rows: Iterable[PsRow]) -> dict[int, str]:
    """The ramherd runs of agents, from the environment that the run gave them."""
    agents = (row.process.pid for row in rows if row.kind is Kind.AGENT)
    return {pid: run for pid in agents if (run := read_variable(pid, RUN_VARIABLE))}


def read_used_percent() -> float:
    total, available = read_meminfo()
    return 100 * (1 - available / total)


def event_of(alert: WatchAlert, at_s: float) -> Event:
    sign = alert.sign
    reason = Reason(
        Why.WARNING_SIGN, what=render_alert(sign), sign=sign.sign, pid=sign.pid,
        number=round(sign.number), limit=round(sign.limit), command=sign.command,
    )  # fmt: skip
    return Event("alert", reason, at_s, herd="")


def send_alerts(alerts: Iterable[WatchAlert], at_s: float, on_alert: str | None) -> None:
    """The user's command and a notice on the desktop, some seconds for each at most."""
    commands = AlertCommands(on_alert)
    for alert in alerts:
        event = event_of(alert, at_s)
        send_notice("ramherd", str(event.reason.numbers["what"]))
        commands.start(event)
        # One after another: a command that hangs takes its time, not that of the next one.
        deadline_s = time.monotonic() + ALERT_S
        while commands.is_running and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
    commands.close()


def read_recorded(store: Store | None, scan: WatchScan) -> Census:
    """The census of seven days; without a store only this look."""
    if store is None:
        return Census(scan.rows, [scan.total])
    return read_census(store, scan.total.at_s - KEEP_S)
