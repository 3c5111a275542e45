"""Many runs: what the service, its keeper and its API hold open comes back to where it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.faults.conftest import Losses
from integration.conftest import Ramherd, await_, make_ramherd, ours, pens
from integration.service.conftest import Service, each_service, is_keeper

__all__ = ["each_service"]

RUNS = 200
HERDS = 4
# A connection of a client may be on its way out. The API opens the store in three threads more when
# requests come at the same time: three files each.
SLACK = {"service": 1, "keeper": 1, "api": 1 + 9}


def count_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def is_api(pid: int) -> bool:
    return b"api/__main__.py" in Path(f"/proc/{pid}/cmdline").read_bytes()


def submit_runs(service: Service, number: int, name: str) -> None:
    jobs = [{"name": f"{name}{n}", "command": "true"} for n in range(number)]
    service.client.wait(service.submit(*jobs))


def count_all(service: Service) -> dict[str, int]:
    (keeper,) = service.keepers()
    (api,) = filter(is_api, ours())
    pids = {"service": service.process.pid, "keeper": keeper, "api": api}
    return {name: count_files(pid) for name, pid in pids.items()}


def is_idle(service: Service) -> bool:
    """Every pen is removed."""
    return not service.rows("SELECT * FROM pens WHERE run <> ''")


def test_a_service_holds_no_more_files_after_200_runs(
    each_service: Service, losses: Losses
) -> None:
    """The first few open what stays open: the store of each process, the event of the marks."""
    service = each_service
    submit_runs(service, 8, "warm")
    await_(lambda: is_idle(service), "its pens are removed")
    before = count_all(service)
    for herd in range(HERDS):
        submit_runs(service, RUNS // HERDS, f"h{herd}-")
    await_(lambda: is_idle(service), "its pens are removed")

    def more() -> dict[str, int]:
        after = count_all(service)
        return {name: max(after[name] - before[name] - SLACK[name], 0) for name in before}

    await_(lambda: not any(more().values()), f"{before} are open again: {count_all(service)}", 5.0)
    losses(f"{RUNS} runs of a service, {service.ramherd.pen}", **more())


@pytest.fixture(params=pens())
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Ramherd:
    return make_ramherd(tmp_path, str(request.param))


def test_a_herd_holds_no_more_files_after_200_runs(home: Ramherd, losses: Losses) -> None:
    """Counted while only the last job runs, as after the first few."""
    jobs: list[dict[str, Any]] = [{"name": f"a{n}", "command": "true"} for n in range(8)]
    jobs += [{"name": "first", "command": wait_for(home, "first"), "after": ["a7"]}]
    jobs += [{"name": f"b{n}", "command": "true", "after": ["first"]} for n in range(RUNS)]
    after_all = [f"b{n}" for n in range(RUNS)]
    jobs += [{"name": "last", "command": wait_for(home, "last"), "after": after_all}]
    text = "".join(json.dumps({"cwd": "/", **job}) + "\n" for job in jobs)
    herd = home.start("run", "-", "--json", "--pen", home.pen, stdin=text)
    counts = {}
    for name in ("first", "last"):
        await_(began(home, name).exists, f"{name} runs", 60.0)
        await_(lambda: len(ours("RAMHERD_RUN")) <= 2, "it alone is left")
        (keeper,) = filter(is_keeper, ours())
        counts[name] = await_steady(herd.process.pid, keeper)
        began(home, name).unlink()
    assert herd.wait() == 0, herd.err.read_text()
    pairs, slack = zip(*counts.values(), strict=True), SLACK["service"]
    more = [max(last - first - slack, 0) for first, last in pairs]
    losses(f"{RUNS} runs of a herd, {home.pen}", run=more[0], keeper=more[1])


def began(home: Ramherd, name: str) -> Path:
    return home.state.with_name(f"{name}.began")


def wait_for(home: Ramherd, name: str) -> str:
    """Until its file is removed."""
    path = began(home, name)
    return f"touch {path}; while [ -e {path} ]; do sleep 0.1; done"


def await_steady(*pids: int) -> list[int]:
    """The least of some looks: pens of runs that have just ended are being removed."""
    seen: list[list[int]] = []

    def is_steady() -> bool:
        seen.append([count_files(pid) for pid in pids])
        return len(seen) >= 100 and seen[-1] == seen[-50]

    await_(is_steady, "the number of open files is steady")
    return seen[-1]
