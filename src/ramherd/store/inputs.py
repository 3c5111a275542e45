"""Inputs of the service's jobs that are not stored in the database, as files of mode 0600.

`environments/` has a file for each herd: the variables of the program that submitted it, then those
of single jobs. They hold secrets, so the file is removed when the herd has ended. `inputs/JOB/` has
a file for each argument list, prompt and standard input that is large. These files are removed when
the job is done, because it is never started again, or with the job.

An environment is written before the row that names it, and locked until then: a file that no row
names and no process has locked was left by a process that died.
"""

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ramherd.core.errors import MAKE_ROOM, StoreUnavailable
from ramherd.core.model import Job
from ramherd.core.record import replace
from ramherd.jobs.stored import large_fields
from ramherd.store.herds import NO_ENVIRONMENT, EnvironmentFile
from ramherd.store.protocol import Store
from ramherd.store.sql import service as sql
from ramherd.system.environ import (
    decode_bytes,
    encode,
    parse_environ,
    read_own_environ,
    read_part,
    render_environ,
    render_words,
)
from ramherd.system.ids import new_id
from ramherd.system.lock_file import acquire_lock

ENVIRONMENTS, INPUTS = "environments", "inputs"
MOVED = "environments_moved"


class WrittenInputs(NamedTuple):
    """The jobs, with the places of their variables, and the file of their herd."""

    jobs: list[Job]
    environment: EnvironmentFile


def environment_path(state: Path, name: str) -> Path:
    return state / ENVIRONMENTS / name


def read_inherited(state: Path, file: EnvironmentFile) -> dict[str, str]:
    """The variables that runs of a herd inherit: those it was submitted with, or our own."""
    if file.name is None or file.inherited_bytes is None:
        return read_own_environ()
    return read_variables(state, file.name, 0, file.inherited_bytes)


def read_variables(state: Path, name: str, start: int, end: int) -> dict[str, str]:
    data = read_part(str(environment_path(state, name)), start, end)
    return {decode_bytes(key): decode_bytes(text) for key, text in parse_environ(data).items()}


def input_path(state: Path, job: str, field: str) -> Path:
    return state / INPUTS / job / field


@contextmanager
def writing_inputs(
    state: Path, jobs: Sequence[Job], env: Mapping[str, str] | None
) -> Iterator[WrittenInputs]:
    """The files are on disk before the caller commits the rows inside; removed if it does not."""
    made: list[Path] = []
    with explained(state), new_environment(state, jobs, env) as written:
        try:
            for job in jobs:
                if large := large_fields(job):
                    made.append(state / INPUTS / job.id)
                    write_large(made[-1], large)
            yield written
        except BaseException:
            for folder in made:
                remove_folder(folder)
            raise


@contextmanager
def new_environment(
    state: Path, jobs: Sequence[Job], env: Mapping[str, str] | None
) -> Iterator[WrittenInputs]:
    """The file of a herd, locked inside the context. A herd without variables has none."""
    if env is None and not any(job.env for job in jobs):
        yield WrittenInputs(list(jobs), NO_ENVIRONMENT)
        return
    path = environment_path(state, new_id())
    parts, placed = [render_environ(env or {})], []
    inherited_bytes = at = len(parts[0])
    for job in jobs:
        if job.env:
            parts.append(render_environ(job.env))
            placed.append(replace(job, env_at=(path.name, at, at + len(parts[-1]))))
            at += len(parts[-1])
        else:
            placed.append(job)
    lock = acquire_lock(str(path))
    assert lock is not None, "it waits for the lock"
    try:
        write_synced(lock.fd, b"".join(parts))
        sync_folder(path.parent)
        known = None if env is None else inherited_bytes
        yield WrittenInputs(placed, EnvironmentFile(path.name, known))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        lock.close()


def write_large(folder: Path, large: Mapping[str, str | tuple[str, ...]]) -> None:
    folder.mkdir(0o700, parents=True)
    for name, value in large.items():
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        fd = os.open(folder / name, flags, 0o600)
        try:
            write_synced(fd, encode(value) if isinstance(value, str) else render_words(value))
        finally:
            os.close(fd)
    sync_folder(folder)
    sync_folder(folder.parent)


def write_synced(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
    os.fsync(fd)


def sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def explained(state: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write the inputs of jobs below {state}: {error.strerror}",
            hint=hint_for(error, state),
        ) from error


def hint_for(error: OSError, state: Path) -> str:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"make it writable for you: chmod -R u+rwX {state}"
    return MAKE_ROOM


def find_unused_environment(store: Store, herd: str) -> str | None:
    """The file of a herd that has ended. The store keeps its name until the file is removed."""
    rows = store.read(sql.UNUSED_ENV, (herd,))
    return rows[0][0] if rows else None


def forget_environment(store: Store, name: str) -> None:
    store.write(sql.FORGET_ENV, (name,))


def remove_inputs(state: Path, job: str) -> None:
    """Removes the inputs of a job that is done."""
    remove_folder(state / INPUTS / job)


def remove_unused_inputs(store: Store, state: Path) -> None:
    """Removes files of herds that have ended, of jobs that are done or pruned, and of dead
    processes.
    """
    for (name,) in store.read(sql.ALL_UNUSED_ENV):
        environment_path(state, name).unlink(missing_ok=True)
        forget_environment(store, name)
    store.commit()
    for path in list_folder(state / ENVIRONMENTS):
        remove_if_unused(store, path)
    for folder in list_folder(state / INPUTS):
        # A job that is being submitted is not in the store yet: its files are written first.
        if not store.read(sql.NEEDS_INPUT, (folder.name,)) and not is_young(folder):
            remove_folder(folder)


def is_young(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime < 3600.0
    except OSError:
        return True


def remove_if_unused(store: Store, path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not store.read(sql.IS_ENV_USED, (path.name,)):
            path.unlink(missing_ok=True)
    except BlockingIOError:  # it is being submitted
        pass
    finally:
        os.close(fd)


def list_folder(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def remove_folder(folder: Path) -> None:
    """Removes a folder that has no subfolders."""
    with suppress(OSError):
        for path in folder.iterdir():
            path.unlink(missing_ok=True)
        folder.rmdir()


def move_environments_out(store: Store, state: Path) -> None:
    """Once for each store: an earlier ramherd kept all variables in the database. Overwrites their
    remains in free pages and in the log.
    """
    how_far = store.read(sql.GET_FLAG, (MOVED,))
    if how_far == [("done",)]:
        return
    if not how_far:
        with store.synced():
            for herd, env in store.read(sql.OLD_HERDS):
                move_environment(store, state, herd, None if env is None else json.loads(env))
            store.write(sql.DROP_OLD_ENVS)
            store.write(sql.DROP_OLD_VARIABLES)
            store.write(sql.SET_FLAG, (MOVED, "moved"))
    try:
        store.overwrite_deleted()
    except StoreUnavailable:  # another program reads the store: the next start tries again
        return
    store.write(sql.SET_FLAG, (MOVED, "done"))
    store.commit()


def move_environment(
    store: Store, state: Path, herd: str, env: Mapping[str, str] | None
) -> None:  # fmt: skip
    specs = {job: json.loads(spec) for job, spec in store.read(sql.OLD_SPECS, (herd,))}
    jobs = [Job(job, herd, "", 0, (), "", env=spec["env"]) for job, spec in specs.items()]
    with explained(state), new_environment(state, jobs, env) as written:
        for job in written.jobs:
            spec = {**specs[job.id], "env_at": job.env_at, "env_names": list(job.env)}
            store.write(sql.SET_SPEC, (json.dumps(spec), job.id))
        store.write(sql.SET_ENV, (*written.environment, herd))
