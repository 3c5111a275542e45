"""`ramherd.run` and `ramherd.run_async`: jobs of a script, run by the `ramherd` program.

The program is a child of the caller. It has its own signals and its own memory, so the caller may
be a thread or an event loop. Jobs and result pass through files without a name: neither process
waits for the other to read.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Unpack

from ramherd.client.herd_result import HerdResult, parse_result
from ramherd.client.run_settings import RunSettings
from ramherd.core import errors
from ramherd.core.errors import RamherdError, UsageError
from ramherd.system.pidfd import open_pid

if TYPE_CHECKING:
    from ramherd.client.new_job import NewJob

Jobs = Iterable["NewJob | Mapping[str, Any]"]
# The name of standard input in the program's errors.
STANDARD_INPUT = "standard input"
# In Python an integer is a number of bytes; in a flag or a file a size needs a unit.
SIZES = {name for name, kind in RunSettings.__annotations__.items() if kind == str | int | None}
EXAMPLE = 'write a job like {"name": "lint", "command": ["./lint.sh"]}'


class ChildFiles(NamedTuple):
    jobs: IO[bytes]
    out: IO[bytes]
    err: IO[bytes]


def run(
    jobs: Jobs, *, cwd: str | os.PathLike[str] | None = None, own: bool = False,
    **settings: Unpack[RunSettings],
) -> HerdResult:  # fmt: skip
    """Runs jobs and waits for them: `ramherd.run([{"command": "make"}], budget="2GiB")`.

    A job is a dict with the keys of a [[job]] table, or a `ramherd.Job`; `cwd` is the working
    directory of jobs that name none. The settings are those of `ramherd run`. If a service is
    running and no setting is given that only the service decides, the service runs the jobs, unless
    `own` is true. A job that fails is part of the result; a mistake raises `ramherd.UsageError`. An
    exception in the caller, such as KeyboardInterrupt, stops all runs before it propagates.
    """
    with open_files(jobs) as files:
        child = start(make_argv(cwd, own=own, settings=settings), files)
        try:
            child.wait()
        except BaseException:
            stop(child)
            raise
        return read_result(child.returncode, files)


async def run_async(
    jobs: Jobs, *, cwd: str | os.PathLike[str] | None = None, own: bool = False,
    **settings: Unpack[RunSettings],
) -> HerdResult:  # fmt: skip
    """`run` for asyncio. If the task is cancelled, all runs are stopped first."""
    with open_files(jobs) as files:
        child = start(make_argv(cwd, own=own, settings=settings), files)
        try:
            await wait_end(child)
        except BaseException:
            await stop_async(child)
            raise
        return read_result(child.returncode, files)


def make_argv(
    cwd: str | os.PathLike[str] | None, *, own: bool, settings: Mapping[str, Any]
) -> list[str]:
    """`-P` prevents the import of a directory of the caller that is called ramherd."""
    program = [sys.executable, "-P", "-m", "ramherd", "run", "-", "--json"]
    program.append(f"--caller={os.getpid()}")
    if own:
        program.append("--own")
    if cwd is not None:
        program.append(f"--cwd={os.fspath(cwd)}")
    return [
        *program,
        *(flag for name, value in settings.items() for flag in make_flags(name, value)),
    ]


def make_flags(name: str, value: Any) -> Iterator[str]:
    if name not in RunSettings.__annotations__:
        raise unknown_setting(name)
    flag = "--" + name.replace("_", "-")
    if value is True:
        yield flag
    elif value is False:
        yield "--" + name.removeprefix("no_") if name.startswith("no_") else f"--no-{flag[2:]}"
    elif isinstance(value, list | tuple):
        yield f"{flag}={','.join(map(str, value))}"
    elif value is not None:
        yield f"{flag}={with_unit(name, value)}"


def with_unit(name: str, value: Any) -> Any:
    return f"{value}B" if name in SIZES and type(value) is int else value


def unknown_setting(name: str) -> UsageError:
    from difflib import get_close_matches  # noqa: PLC0415 - only for errors

    close = get_close_matches(name, RunSettings.__annotations__, 1)
    hint = f"did you mean {close[0]!r}?" if close else "all settings: ramherd config"
    return UsageError(f"unknown setting {name!r}", hint=hint)


@contextmanager
def open_files(jobs: Jobs) -> Iterator[ChildFiles]:
    lines = [encode_job(job, number) for number, job in enumerate(jobs, 1)]
    if not lines:
        raise UsageError("there are no jobs to run", hint=EXAMPLE)
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.writelines(lines)
        given.seek(0)
        yield ChildFiles(given, out, err)


def encode_job(job: object, number: int) -> bytes:
    if not isinstance(job, Mapping):
        raise UsageError(
            f"job {number} is of type {type(job).__name__}, not a dict",
            hint=EXAMPLE,
        )
    try:
        job = {name: with_unit(name, value) for name, value in job.items()}
        return json.dumps(job, default=os.fspath).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise UsageError(f"job {number} cannot be written as JSON: {error}") from None


def start(argv: list[str], files: ChildFiles) -> "subprocess.Popen[bytes]":
    """Starts the program in its own process group: Ctrl-C reaches only the caller, which then stops
    the child once. A second signal would end all runs without their grace.
    """
    try:
        return subprocess.Popen(
            argv, stdin=files.jobs, stdout=files.out, stderr=files.err, process_group=0
        )
    except OSError as error:
        raise RamherdError(f"cannot start {argv[0]}: {error.strerror}") from None


def stop(child: "subprocess.Popen[bytes]") -> None:
    """The program ends its runs first. Another Ctrl-C is another signal, which ends the grace."""
    while child.poll() is None:
        child.terminate()
        with suppress(KeyboardInterrupt):
            child.wait()


async def stop_async(child: "subprocess.Popen[bytes]") -> None:
    import asyncio  # noqa: PLC0415 - 11 MB that `run` does not need

    while child.poll() is None:
        child.terminate()
        with suppress(asyncio.CancelledError):
            await wait_end(child)


async def wait_end(child: "subprocess.Popen[bytes]") -> None:
    """Works in any loop of any thread: needs no signal handler and no child watcher."""
    import asyncio  # noqa: PLC0415

    pidfd = open_pid(child.pid)
    if pidfd is not None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(pidfd, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(pidfd)
            os.close(pidfd)
    child.wait()


def read_result(code: int, files: ChildFiles) -> HerdResult:
    files.out.seek(0)
    try:
        value = json.loads(files.out.read())
    except ValueError:
        value = {}
    if "results" in value:
        return parse_result(value)
    if "error" in value:
        raise make_error(value)
    raise no_result(code, files)


def make_error(value: Mapping[str, Any]) -> RamherdError:
    """The error that the program printed, of the same class."""
    kind = getattr(errors, str(value.get("kind")), RamherdError)
    message = str(value["error"])
    if message.startswith(STANDARD_INPUT):
        message = "jobs" + message.removeprefix(STANDARD_INPUT)
    made = kind(message, hint=str(value.get("hint") or ""))
    assert isinstance(made, RamherdError)
    return made


def no_result(code: int, files: ChildFiles) -> RamherdError:
    if code < 0:
        name = signal.Signals(-code).name
        return RamherdError(f"the ramherd program was ended by {name}", hint="ramherd jobs")
    files.err.seek(0)
    lines = files.err.read().decode(errors="replace").splitlines() or [""]
    kind = UsageError if code == UsageError.exit_code else RamherdError
    return kind(f"the ramherd program ended with exit status {code}: {lines[-1]}")
