"""`ramherd status`: the machine and its jobs on one screen, with and without a service."""

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from ramherd.cli.job_list import JobList, read_job_list
from ramherd.cli.main import print_warnings, read_columns
from ramherd.cli.store_reader import open_to_read
from ramherd.config.load import load_config, make_policy
from ramherd.config.paths import runtime_path
from ramherd.core.procid import ProcId
from ramherd.core.reasons import Why, reason_from_json
from ramherd.decide.budget import budget_bytes
from ramherd.decide.usage_limits import explain_window
from ramherd.hook.sessions_table import sessions_as_json
from ramherd.measure.cgroups import read_trees
from ramherd.measure.machine import read_machine
from ramherd.show.job_table import short_herd
from ramherd.show.reasons import render_reason
from ramherd.show.result_lines import state_of
from ramherd.show.status_page import render_status
from ramherd.store.ledger_file import read_ledger
from ramherd.store.protocol import Store
from ramherd.store.sql.ledger import USE_OF_OWNERS
from ramherd.store.start_pauses import read_start_pauses, read_start_waits
from ramherd.store.subagent_slots import read_sessions
from ramherd.store.usage_windows import read_windows
from ramherd.system.boot_clock import read_boot_s
from ramherd.system.procfs import is_running, read_boot_id

EPILOG = """\
examples:
  ramherd status            budget, jobs, usage limits and warnings
  ramherd status --json     the same as one JSON object
  ramherd jobs              all jobs that have not ended
"""
# From the snapshot of a service.
OF_SERVICE = ("pid", "version", "started_s", "pen", "draining")
OF_MEMORY = (
    "budget_bytes", "leased_bytes", "used_bytes", "available_bytes", "total_bytes", "level",
)  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(verb=status)


def status(options: argparse.Namespace) -> int:
    found = read_status()
    if options.json:
        print(json.dumps({key: value for key, value in found.items() if key != "open_jobs"}))
        return 0
    for line in render_status(found, read_columns(), read_rows()):
        print(line)
    return 0


def read_rows() -> int:
    try:
        return os.get_terminal_size(1).lines or 24
    except OSError:
        return 24


def read_status() -> dict[str, Any]:
    listed = read_job_list()
    ledger = str(runtime_path() / "ledger.db")
    with closing(open_to_read()) as store:
        known = {
            "limits": read_limits(store),
            "waits_for": read_wait(store, listed),
            "warnings": list(find_warnings(store, listed)),
        }
    return {
        "service": describe_service(listed.snapshot),
        **(read_memory(ledger) if listed.snapshot is None else pick(listed.snapshot, OF_MEMORY)),
        "paused": listed.paused_s is not None,
        "paused_s": listed.paused_s,
        "jobs": count_states(listed),
        **known,
        "sessions": sessions_as_json(read_sessions(ledger), read_boot_s()),
        "open_jobs": listed.jobs,
    }


def pick(snapshot: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: snapshot[name] for name in names}


def describe_service(snapshot: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if snapshot is None else pick(snapshot, OF_SERVICE)


def count_states(listed: JobList) -> dict[str, int]:
    states = [state_of(job) for job in listed.jobs]
    return {state: states.count(state) for state in dict.fromkeys(states)}


def read_memory(ledger: str) -> dict[str, Any]:
    """The memory that a `ramherd run` would find now."""
    rows = [
        (pid, leased, used)
        for pid, ticks, leased, used in read_ledger(
            ledger, USE_OF_OWNERS.format(boot_id=read_boot_id())
        )
        if is_running(ProcId(pid, ticks))
    ]
    config = load_config()
    print_warnings(config.warnings)
    machine = read_machine(read_trees(), herds=[(pid, used) for pid, _leased, used in rows])
    return {
        "budget_bytes": budget_bytes(machine, 0, make_policy(config)),
        "leased_bytes": sum(leased for _pid, leased, _used in rows),
        "used_bytes": sum(used for _pid, _leased, used in rows),
        "available_bytes": machine.available_bytes,
        "total_bytes": machine.total_bytes,
        "level": "calm",
    }


def read_limits(store: Store) -> list[dict[str, Any]]:
    """Accounts whose API refuses requests at present."""
    now_s = time.time()
    windows = [one for one in read_windows(store) if one.until_s > now_s]
    return [explain_window(one, now_s).as_json() for one in windows]


def read_wait(store: Store, listed: JobList) -> dict[str, Any] | None:
    """Why the first queued job does not start: in the service, otherwise in a `ramherd run`."""
    if listed.snapshot is not None:
        found: dict[str, Any] | None = listed.snapshot["waits_for"]
        return found
    herds = {job["herd"] for job in listed.jobs if not job["owner_lost"]}
    waits = [wait for herd, wait in read_start_waits(store).items() if herd in herds]
    return waits[0] if waits else None


def find_warnings(store: Store, listed: JobList) -> Iterator[str]:
    """Problems that the user has to solve."""
    herds = {job["herd"] for job in listed.jobs}
    for herd, pause in read_start_pauses(store).items():
        reason = reason_from_json(pause)
        is_live = herd in herds or listed.snapshot is not None
        if is_live and reason.why not in (Why.PAUSED, Why.SERVICE_STOPS):
            yield render_reason(reason)
    lost = {job["herd"] for job in listed.jobs if job["owner_lost"]}
    for herd in sorted(lost):
        yield f"herd {short_herd(herd)} was interrupted (ramherd run --resume {herd})"
    stuck = [
        job for job in listed.jobs if job["reason"].get("why") in ("merge_conflict", "cannot_merge")
    ]
    for job in stuck:
        yield f"job {job['number']} waits for you (ramherd show {job['number']})"
    if listed.snapshot is None and any(
        job["reason"].get("why") == "no_service" for job in listed.jobs
    ):
        yield "jobs of the service wait for it (ramherd up)"
