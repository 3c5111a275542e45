"""The store is deleted, replaced or damaged under those that use it."""

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from e2e.faults.conftest import Losses
from integration.conftest import Ramherd, await_, ours
from integration.service.conftest import Service
from ramherd.measure.cgroups import read_trees

SUFFIXES = ("", "-wal", "-shm")


def delete(store: Path) -> None:
    """The last program to close it removes two of them itself."""
    for suffix in SUFFIXES:
        Path(f"{store}{suffix}").unlink(missing_ok=True)


def delete_log(store: Path) -> None:
    Path(f"{store}-wal").unlink()


def delete_index(store: Path) -> None:
    Path(f"{store}-shm").unlink()


def truncate(store: Path) -> None:
    os.truncate(store, 0)


def overwrite(store: Path) -> None:
    store.write_bytes(b"not a database" * 3000)


def replace_by_another(store: Path) -> None:
    delete(store)
    with closing(sqlite3.connect(store)) as db:
        db.execute("CREATE TABLE other (a)")


FAULTS = [delete, delete_log, delete_index, truncate, overwrite, replace_by_another]


def store_of(service: Service) -> Path:
    return service.ramherd.state / "ramherd/ramherd.db"


def fleets(names: list[str]) -> set[Path]:
    """The cgroups of these fleets that are still there."""
    trees = read_trees()
    places = {*trees.v1.values(), *([trees.v2, trees.v2.parent] if trees.v2 else [])}
    paths = {place / f"ramherd-{name}" for place in places for name in names}
    return {path for path in paths if path.exists()}


@pytest.mark.parametrize("break_it", FAULTS)
def test_a_service_writes_its_store_back(
    service: Service, losses: Losses, break_it: Callable[[Path], None]
) -> None:
    """Jobs that were submitted before and right after are there, also after kill -9."""
    go = service.ramherd.state.with_name("go")
    service.submit({"name": "long", "command": f"until [ -e {go} ]; do sleep 0.05; done; exit 3"})
    service.await_state("long", "running")
    herd = service.submit(*({"name": f"j{n}", "command": "true"} for n in range(5)))
    service.client.wait(herd)
    before = service.submit(
        {"name": "before", "command": "sleep 0.2", "after": ["long2"]},
        {"name": "long2", "command": f"until [ -e {go} ]; do sleep 0.05; done"},
    )
    break_it(store_of(service))
    began = time.monotonic()
    service.submit({"name": "after", "command": "true"})
    await_(lambda: "written back" in service.said or "could be read" in service.said, "it is told")
    assert time.monotonic() - began < 3
    service.kill()
    service.start()
    go.touch()
    service.client.wait(before)
    await_(lambda: service.state("after") == "done", "the last submission is done")
    long = await_(lambda: service.state("long") == "failed" and service.job("long"), "it ends")
    jobs = {job["name"]: job["state"] for job in service.client.jobs()}
    losses(
        f"{break_it.__name__.replace('_', ' ')}: the store of a service",
        jobs=9 - len(jobs),
        unfinished=sum(state != "done" for name, state in jobs.items() if name != "long"),
        runs_repeated=len(long["runs"]) - 1,
    )
    (check,) = service.rows("PRAGMA quick_check")
    assert check == ("ok",)


def test_keepers_of_a_lost_store_are_ended(service: Service, losses: Losses) -> None:
    """The service died, its store is gone: the next one ends what still runs, with its cgroups."""
    service.submit(*({"name": f"j{n}", "command": "sleep 60"} for n in range(3)))
    for number in range(3):
        service.await_state(f"j{number}", "running")
    await_(lambda: len(ours("RAMHERD_RUN")) >= 3, "all run")
    runs = [Path(path) for path in (service.ramherd.state / "ramherd/runs").iterdir()]
    names = os.listdir(service.ramherd.state / "ramherd/keepers")
    assert fleets(names)
    service.kill()
    delete(store_of(service))
    service.start()
    assert "3 runs that the store does not know were ended" in service.said
    await_(lambda: not ours("RAMHERD_RUN"), "nothing of them runs")
    herd = service.submit({"name": "new", "command": "true"})
    service.client.wait(herd)
    service.stop()
    losses(
        "the store is deleted while keepers live",
        processes=len(ours("RAMHERD_RUN")),
        cgroups=len(fleets(names)),
        directories=sum((run / "tmp").exists() for run in runs),
    )


@pytest.mark.parametrize("break_it", [delete, delete_log, overwrite])
def test_a_herd_writes_its_store_back(
    ramherd: Ramherd, losses: Losses, break_it: Callable[[Path], None]
) -> None:
    """`ramherd run` goes on, and all of its results are in the store."""
    go = ramherd.state.with_name("go")
    jobs = [{"name": "a", "command": f"until [ -e {go} ]; do sleep 0.05; done; exit 4"}]
    jobs += [{"name": f"j{n}", "command": "true"} for n in range(3)]
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    started = ramherd.start("run", "-", "--pen", ramherd.pen, stdin=text)
    await_(lambda: started.err.read_text().count("done") == 3, "three are done")
    break_it(ramherd.state / "ramherd/ramherd.db")
    await_(lambda: "store " in started.err.read_text(), "it is told")
    go.touch()
    assert started.wait() == 1
    listed = ramherd.run("jobs", "--all", "--json").stdout.splitlines()
    states = {job["name"]: job["state"] for job in map(json.loads, listed)}
    expected = {"a": "failed", "j0": "done", "j1": "done", "j2": "done"}
    losses(
        f"{break_it.__name__.replace('_', ' ')}: the store of a herd",
        states=sum(states.get(name) != state for name, state in expected.items()),
    )


def test_the_hint_of_a_damaged_store_works(ramherd: Ramherd, losses: Losses) -> None:
    """Each verb says what is so in one line; after `ramherd run` all of them work again."""
    assert ramherd.json([{"name": "a", "command": "true"}])["exit_code"] == 0
    store = ramherd.state / "ramherd/ramherd.db"
    overwrite(store)
    for verb in (["jobs"], ["events"], ["logs", "a"], ["history"], ["prune", "--keep", "1GiB"]):
        refused = ramherd.run(*verb)
        assert refused.returncode == 3, (verb, refused.stderr)
        assert f"the store {store} is damaged" in refused.stderr
        assert "hint: ramherd up, or ramherd run" in refused.stderr
    done = ramherd.run("run", "-", "--pen", ramherd.pen, stdin='{"name": "b", "command": "true"}\n')
    assert done.returncode == 0, done.stderr
    assert "ramherd.db.damaged-" in done.stderr
    assert ramherd.run("logs", "b").returncode == 0
    aside = [path for path in store.parent.iterdir() if ".damaged-" in path.name]
    losses("a damaged store, and its hint", files=1 - len(aside))


def test_what_can_be_read_of_a_damaged_store_is_kept(ramherd: Ramherd, losses: Losses) -> None:
    """One page of zeros costs the rows on it, no more."""
    for name in ("a", "b"):
        ramherd.json([{"name": f"{name}{n}", "command": "true"} for n in range(20)])
    store = ramherd.state / "ramherd/ramherd.db"
    with closing(sqlite3.connect(store)) as db:
        ((page,),) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'")
    with store.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(bytes(4096))
    assert ramherd.json([{"name": "c", "command": "true"}])["done"] >= 0
    ramherd.json([{"name": "d", "command": "true"}])
    listed = ramherd.run("jobs", "--all", "--json").stdout.splitlines()
    names = {job["name"] for job in map(json.loads, listed)}
    assert "d" in names
    losses("one page of the store is zeros", jobs=40 - len(names & set(old_names())))


def old_names() -> list[str]:
    return [f"{name}{n}" for name in ("a", "b") for n in range(20)]


def test_ctrl_c_still_ends_the_herd(ramherd: Ramherd) -> None:
    """Also while its store is being broken again and again."""
    started = ramherd.start(
        "run",
        "-",
        "--grace",
        "1s",
        "--pen",
        ramherd.pen,
        stdin='{"name": "a", "command": "sleep 300"}\n',
    )
    await_(lambda: ours("RAMHERD_RUN"), "it runs")
    for _time in range(3):
        delete(ramherd.state / "ramherd/ramherd.db")
        await_((ramherd.state / "ramherd/ramherd.db-shm").exists, "it is back", 60)
    started.signal(signal.SIGINT)
    assert started.wait() == 130
