"""A submitted herd: from the bytes of a request to jobs in the store.

Small herds are read in a thread of the API. Large herds are read in a process of their own, with
this file as its program: twenty thousand jobs take 60 MB while they are read, and Python seldom
returns such memory.
"""

import json
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from ramherd.api.request_head import HttpError
from ramherd.core.errors import RamherdError, StoreError, UsageError
from ramherd.core.model import Job
from ramherd.core.units import shown
from ramherd.core.values import parse_amount, parse_raw_text, parse_text, parse_variables
from ramherd.jobs.reader import Defaults, make_jobs, parse_defaults
from ramherd.jobs.schema import find_directory
from ramherd.store.connect import open_store
from ramherd.store.protocol import Store
from ramherd.store.service_requests import submit
from ramherd.system.ids import new_id

MOST_JOBS = 100_000
# Some hundred jobs: 20 ms of a thread.
LARGE_BYTES = 64 << 10
# The year 2200.
LAST_S = 7_258_118_400
HERD_KEYS = {
    "jobs", "env", "cwd", "defaults", "profiles", "source", "max_cost_usd", "on_done", "start_at_s",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Submission:
    state: Path
    defaults: Defaults = field(default_factory=Defaults)

    def store(self, store: Store, data: bytes) -> dict[str, Any]:
        """Returns the answer; by then the herd is on disk, complete."""
        return self._store(store, self._parse(data))

    def store_commands(self, store: Store, data: bytes) -> dict[str, Any] | None:
        """The same if no job has an agent; else None. Agents are checked in a separate process: the
        modules for that take a megabyte, and git may be called for worktrees.
        """
        herd = self._parse(data)
        return None if herd.has_agents else self._store(store, herd)

    def _parse(self, data: bytes) -> "NewHerd":
        body = parse_body(data, HERD_KEYS)
        tables, env, limit = body.get("jobs"), body.get("env"), body.get("max_cost_usd")
        if not isinstance(tables, list) or len(tables) > MOST_JOBS:
            raise UsageError(f"'jobs' is not a list of at most {MOST_JOBS} jobs")
        if env is not None:
            parse_variables(env)
        limit = self.defaults.max_cost_usd if limit is None else parse_amount(limit)
        on_done = None if body.get("on_done") is None else parse_text(body["on_done"])
        herd = new_id()
        defaults = choose_defaults(self.defaults, body)
        jobs = make_jobs(tables, parse_text(body.get("source", "the request")), herd, defaults)
        if (start_at_s := parse_start_at(body.get("start_at_s"))) is not None:
            jobs = [replace(job, start_at_s=start_at_s) for job in jobs]
        return NewHerd(herd, jobs, env, limit, on_done)

    def _store(self, store: Store, herd: "NewHerd") -> dict[str, Any]:
        id_, jobs, env, limit, on_done = herd
        if herd.has_agents:
            from ramherd.supervisor.check_agents import prepare  # noqa: PLC0415 - for these only

            jobs = prepare(jobs, self.state / "worktrees", env=env, max_cost_usd=limit)
        submit(store, self.state, id_, jobs, env, max_cost_usd=limit, on_done=on_done)
        return {"herd": id_, "jobs": len(jobs)}


class NewHerd(NamedTuple):
    id: str
    jobs: list[Job]
    env: Mapping[str, str] | None
    max_cost_usd: float | None
    on_done: str | None

    @property
    def has_agents(self) -> bool:
        return any(job.brief is not None for job in self.jobs)


def parse_body(data: bytes, keys: set[str]) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise HttpError(400, "the body is not JSON") from None
    if not isinstance(value, dict) or not set(value) <= keys:
        raise HttpError(400, f"the body is not an object with {' and '.join(sorted(keys))}")
    return value


def parse_start_at(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or (is_number and 0 < value < LAST_S):
        return None if value is None else float(value)
    raise UsageError(f"'start_at_s' is not a time in epoch seconds: {shown(value)}")


def choose_defaults(own: Defaults, body: Mapping[str, Any]) -> Defaults:
    """Defaults of the request for jobs that give no value; they override the service's settings."""
    profiles = body.get("profiles", {})
    if not isinstance(profiles, dict):
        raise UsageError("'profiles' is not an object")
    parsed = {name: parse_defaults(table, f"profile {name!r}") for name, table in profiles.items()}
    named = {name: {**own.values, **values} for name, values in parsed.items()}
    return replace(
        own,
        values={**own.values, **parse_defaults(body.get("defaults", {}), "the defaults")},
        profiles={**own.profiles, **named},
        here=find_directory(parse_raw_text(body["cwd"]), None) if "cwd" in body else None,
        path=None if body.get("env") is None else body["env"].get("PATH"),
    )


def http_error(error: RamherdError) -> HttpError:
    return HttpError(503 if isinstance(error, StoreError) else 400, str(error), hint=error.hint)


def main() -> None:
    """Runs in a process of its own: prints status and answer as one line."""
    given = json.loads(sys.argv[1])
    state = Path(given["state"])
    try:
        try:
            with closing(open_store(state)) as store:
                defaults = Defaults(**given["defaults"])
                value = Submission(state, defaults).store(store, sys.stdin.buffer.read())
        except RamherdError as error:
            raise http_error(error) from None
    except HttpError as error:
        print(json.dumps([error.status, {"error": str(error), "hint": error.hint}]))
    else:
        print(json.dumps([201, value]))


if __name__ == "__main__":
    main()
