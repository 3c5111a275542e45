"""`ramherd run --resume [HERD]`: continues an interrupted herd, here or in the service.

The flags of the first `ramherd run` apply again, unless they are given now.
"""

import argparse
from contextlib import closing

from ramherd.act.environments import choose_passed
from ramherd.act.recovery import recover
from ramherd.cli.job_names import find_herd
from ramherd.cli.main import print_error, print_warnings
from ramherd.cli.run import is_apart, load_settings, report
from ramherd.cli.run_display import RunDisplay, is_output_shown, read_commands
from ramherd.config.load import load_config
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.errors import UsageError
from ramherd.show.summary import render_counts
from ramherd.store.connect import open_store
from ramherd.store.herds import read_job_names
from ramherd.store.interrupted_herds import (
    StoredHerd,
    check_free,
    continue_herd,
    find_interrupted_herd,
    has_interrupted_jobs,
)
from ramherd.store.listing import read_herd
from ramherd.store.protocol import Store
from ramherd.supervisor.lost_runs import count_lost_runs
from ramherd.supervisor.resume_herd import resume_here
from ramherd.supervisor.run_herd import FAILED, OK
from ramherd.system.unix_socket import is_listening


def continue_run(options: argparse.Namespace) -> int:
    if options.at is not None or options.in_ is not None:
        raise UsageError("--resume starts at once: --at and --in are for new herds")
    if options.jobs or options.command is not None or options.dry_run:
        raise UsageError(
            "--resume continues a herd, and takes no jobs", hint="ramherd run --resume HERD"
        )
    with closing(open_store(state_dir())) as store:
        found = find_free_herd(store, options.resume)
        if not has_interrupted_jobs(store, found.id):
            return report_complete(store, found.id)
        jobs = len(read_job_names(store, found.id, 2))
    restore_settings(options, found)
    if not is_apart(options) and is_listening(runtime_dir() / "api.sock"):
        return continue_in_service(options, found.id)
    config = load_settings(options)
    command = f"ramherd run --resume {found.id}"
    commands = read_commands(found.id) if is_output_shown(options) else {}
    return report(
        lambda rules, display: resume_here(
            found.id, lambda store: continue_herd(store, found.id), command, rules, display
        ),
        config,
        options,
        RunDisplay(options, commands, jobs=jobs),
    )


def find_free_herd(store: Store, name: str) -> StoredHerd:
    """The named herd, or the newest interrupted one. The remains of a dead ramherd are cleared
    first.
    """
    recover(store, runtime_dir(), state_dir() / "runs")
    herd = find_herd(store, name) if name else find_interrupted_herd(store)
    if herd is None:
        raise UsageError("no herd was interrupted", hint="ramherd jobs --all")
    found = check_free(store, herd, runtime_dir())
    count_lost_runs(store, state_dir(), found.id)
    return found


def report_complete(store: Store, herd: str) -> int:
    info = read_herd(store, herd)
    assert info is not None
    counts = info["counts"]
    done, total = counts.get("done", 0), sum(counts.values())
    ended = {state: counts.get(state, 0) for state in ("done", "failed", "cancelled")}
    results = [{"state": state} for state, jobs in counts.items() for _job in range(jobs)]
    text = render_counts({"jobs": total, **ended, "results": results})
    is_done = done == total
    hint = f"ramherd results {herd}" if is_done else "run a job again: ramherd retry JOB"
    print_error(f"herd {herd} is complete: {text}", hint=hint)
    return OK if is_done else FAILED


def restore_settings(options: argparse.Namespace, found: StoredHerd) -> None:
    """Uses the flags of the interrupted call where this call has none."""
    kept = dict(found.settings or {})
    if found.max_cost_usd is not None:
        kept.setdefault("max_cost_usd", str(found.max_cost_usd))
    for name, value in kept.items():
        if getattr(options, name, None) in (None, False):
            setattr(options, name, value)


def continue_in_service(options: argparse.Namespace, herd: str) -> int:
    from ramherd.cli.follow import follow  # noqa: PLC0415 - 20 ms
    from ramherd.client.client import Client  # noqa: PLC0415

    config, client = load_config(options), Client()
    print_warnings(config.warnings)
    after = client.last_event()
    client.resume_herd(
        herd, choose_passed(config["pass_env"]), max_cost_usd=config["max_cost_usd"]
    )  # fmt: skip
    return follow(client, herd, options, after=after, is_notified=config["notify"])
