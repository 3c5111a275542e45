"""`ramherd up -d`: the service as a process of its own, without a terminal and without systemd."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ramherd.core.errors import NoService

LOG = "service.log"
# The service prints a few lines a day: events are in the store, not here.
MOST_LOG_BYTES = 1 << 20
# A first start on a busy machine; the API has libraries to import.
ANSWERS_WITHIN_S = 60.0
LOOK_EVERY_S = 0.05


class BackgroundService(NamedTuple):
    pid: int
    log: Path


def start_in_background(
    flags: Sequence[str], state: Path, is_answering: Callable[[], bool]
) -> BackgroundService:
    """Returns when the API answers. A service that ends before that is an error, with the last
    lines that it printed.
    """
    log = state / LOG
    if log.exists() and log.stat().st_size > MOST_LOG_BYTES:
        log.replace(log.with_suffix(".log.old"))
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        begin = os.fstat(fd).st_size
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ramherd", "up", *flags], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=fd, start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(fd)
    await_answer(process, log, begin, is_answering)
    return BackgroundService(process.pid, log)


def await_answer(
    process: "subprocess.Popen[bytes]", log: Path, begin: int, is_answering: Callable[[], bool]
) -> None:
    deadline = time.monotonic() + ANSWERS_WITHIN_S
    while not is_answering():
        if process.poll() is not None:
            raise NoService(
                f"the service did not start: {read_last(log, begin)}", hint=f"cat {log}"
            )
        if time.monotonic() > deadline:
            process.terminate()
            raise NoService(
                f"the service did not answer within {ANSWERS_WITHIN_S:.0f} s", hint=f"cat {log}"
            )
        time.sleep(LOOK_EVERY_S)


def read_last(log: Path, begin: int) -> str:
    """The error line of the service, without the leading `ramherd:`."""
    with log.open("rb") as file:
        file.seek(begin)
        lines = file.read().decode(errors="replace").splitlines()
    errors = [line.removeprefix("ramherd: ") for line in lines if line.startswith("ramherd: ")]
    return errors[-1] if errors else (lines or ["it printed nothing"])[-1]
