"""Every verb, called as a shell, a cron job or a broken machine may call it: one line and a
documented exit code (docs/troubleshooting.md), never a traceback, and never a defect of ours.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd, await_
from integration.service.conftest import Service

from .conftest import Losses, make_service

Env = dict[bytes, bytes]
JOB = '{"name": "a", "command": "echo \u00e9"}\n'.encode()
RAW = b"\xff\xe9"
# What each verb ends with if nothing is wrong, without a service.
VERBS: dict[str, tuple[list[Any], int]] = {
    "run": (["run", "--own", "-"], 0),
    "run --dry-run": (["run", "--own", "--dry-run", "-"], 0),
    "submit": (["submit", "-"], 3),
    "jobs": (["jobs", "--all"], 0),
    "cancel": (["cancel", "a"], 3),
    "pause": (["pause"], 3),
    "resume": (["resume"], 3),
    "retry": (["retry", "a"], 2),
    "recycle": (["recycle", "a"], 3),
    "exec": (["exec", "--", "true"], 0),
    "hook": (["hook", "status"], 0),
    "logs": (["logs", "a"], 0),
    "events": (["events"], 0),
    "drill": (["drill", "--agents", "1", "--pace", "600"], 0),
    "simulate": (["simulate"], 0),
    "history": (["history"], 0),
    "ps": (["ps"], 0),
    "reap": (["reap"], 0),
    "prune": (["prune"], 0),
    "config": (["config"], 0),
    "--help": (["--help"], 0),
    "--version": (["--version"], 0),
}
# They run something, and pass on what it prints: their own lines are no reason to fail.
RUN_SOMETHING = {"run", "exec", "drill"}
# `retry` refuses a job that is done.
NO_SERVICE = {verb for verb, (_args, code) in VERBS.items() if code == 3} | {"retry"}
PRINT = set(VERBS) - NO_SERVICE - RUN_SOMETHING
# Jobs, sessions and a project's settings have a directory.
NEED_CWD = {"run", "run --dry-run", "exec", "hook", "drill"}
NEED_STATE = {"run", "exec", "drill", "hook", "prune"}


# Where a fault can show: 0.2 s a call add up.
LOCALE_VERBS = {"run --dry-run", "jobs", "logs", "events", "config", "exec"}
PLACE_VERBS = {"run", "exec", "jobs", "config", "prune"}
SOME = {
    **dict.fromkeys(("the locale C", "a locale that is missing", "output in ASCII"), LOCALE_VERBS),
    **dict.fromkeys(("no HOME", "no PATH"), PLACE_VERBS),
    "30 descriptors": {"run", "exec", "jobs", "ps"},
    **dict.fromkeys(
        ("a full stderr", "no stdout", "no stderr", "no stdin"), set(VERBS) - {"drill", "simulate"}
    ),
}


def without(*names: bytes) -> Callable[[Env], Env]:
    return lambda env: {name: text for name, text in env.items() if name not in names}


def adding(**variables: bytes) -> Callable[[Env], Env]:
    return lambda env: {**env, **{os.fsencode(name): text for name, text in variables.items()}}


ASCII = adding(LC_ALL=b"C", PYTHONUTF8=b"0", PYTHONCOERCECLOCALE=b"0")
# The fault: what the shell does before and after the command, the environment, and which verbs end
# with another code than usual.
FAULTS: dict[str, tuple[str, str, Callable[[Env], Env], dict[str, int]]] = {
    "a variable that is no UTF-8": ("", "", adding(RAW=RAW, COLUMNS=RAW), {}),
    "a directory that is no UTF-8": ("mkdir $'\\xff'; cd $'\\xff'; ", "", adding(), {}),
    "the locale C": ("", "", adding(LC_ALL=b"C"), {}),
    "a locale that is ASCII": ("", "", ASCII, {}),
    "a locale that is missing": ("", "", adding(LC_ALL=b"xx_YY.ISO-8859-1"), {}),
    "output in ASCII": ("", "", adding(PYTHONIOENCODING=b"ascii"), {}),
    "a directory that is gone": (
        "mkdir gone; cd gone; rmdir ../gone; ", "", adding(), dict.fromkeys(NEED_CWD, 2),
    ),
    "a full stdout": ("", " >/dev/full", adding(), dict.fromkeys(PRINT, 3)),
    "a full stderr": ("", " 2>/dev/full", adding(), {}),
    "no stdout": ("", " >&-", adding(), {}),
    "no stderr": ("", " 2>&-", adding(), {}),
    "no stdin": ("", " <&-", adding(), {"run": 2, "run --dry-run": 2}),
    "a reader that is gone": (
        "(", ") | true; exit ${PIPESTATUS[0]}", adding(), dict.fromkeys(PRINT, 1),
    ),
    "10 descriptors": ("ulimit -n 10; ", "", adding(), dict.fromkeys(RUN_SOMETHING, 3)),
    "20 descriptors": ("ulimit -n 20; ", "", adding(), {"run": 3, "drill": 3}),
    "30 descriptors": ("ulimit -n 30; ", "", adding(), {"run": 3, "drill": 3}),
    "no HOME": ("", "", without(b"HOME"), {}),
    "a HOME that cannot be written": (
        "", "", lambda env: {**without(b"XDG_STATE_HOME")(env), b"HOME": b"/proc/nowhere"},
        {
            **dict.fromkeys(NEED_STATE, 3),
            **dict.fromkeys(("cancel", "retry", "recycle", "logs", "events"), 2),
        },
    ),
    "no PATH": ("", "", without(b"PATH"), {}),
}  # fmt: skip


def call(
    ramherd: Ramherd, args: list[Any], cwd: Path, *,
    before: str = "", after: str = "", change: Callable[[Env], Env] = dict,
) -> "subprocess.CompletedProcess[bytes]":  # fmt: skip
    env = {os.fsencode(name): os.fsencode(text) for name, text in ramherd.env.items()}
    env.pop(b"PYTHONUNBUFFERED", None)
    script = f'{before}exec "$0" -m ramherd "$@"{after}'
    return subprocess.run(
        ["/bin/bash", "-c", script, sys.executable, *args],
        env=change(env), input=JOB, cwd=cwd, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def find_mistake(verb: str, done: "subprocess.CompletedProcess[bytes]", expected: int) -> str:
    """Empty if it ended as it should, with at most one line about why."""
    text = done.stderr.decode(errors="replace")
    lines = [
        line for line in text.splitlines() if line.startswith("ramherd:") and "cleared" not in line
    ]
    if done.returncode != expected:
        return f"{verb}: {done.returncode}, not {expected}: {text[-300:]}"
    if any(word in text for word in ("Traceback", "a bug", "Exception ignored", "Error:")):
        return f"{verb}: {text[-300:]}"
    if expected >= 2 and len(lines) > 1:
        return f"{verb}: more than one line: {text[-300:]}"
    return ""


@pytest.mark.parametrize("fault", FAULTS)
def test_each_verb_ends_as_documented(
    ramherd: Ramherd, losses: Losses, tmp_path: Path, fault: str
) -> None:
    """Without a service."""
    before, after, change, codes = FAULTS[fault]
    assert call(ramherd, VERBS["run"][0], tmp_path).returncode == 0
    mistakes = []
    for number, (verb, (args, usual)) in enumerate(VERBS.items()):
        if verb not in SOME.get(fault, VERBS):
            continue
        here = tmp_path / f"here{number}"
        here.mkdir()
        done = call(ramherd, args, here, before=before, after=after, change=change)
        mistakes.append(find_mistake(verb, done, codes.get(verb, usual)))
    assert not any(mistakes), "\n".join(filter(None, mistakes))
    losses(f"every verb with {fault}", wrong_ends=len(list(filter(None, mistakes))))


def test_an_argument_that_is_no_text(service: Service, losses: Losses, tmp_path: Path) -> None:
    """Named in one line where it is a name; passed on where it is for a program."""
    wrong: list[list[Any]] = [
        *([verb, RAW] for verb in ("cancel", "retry", "recycle", "logs", "prune", "config", "ps")),
        ["jobs", "--herd", RAW], ["events", "--job", RAW], ["run", RAW], ["submit", RAW],
        ["run", "--cwd", RAW, "-"], ["run", "--label", RAW, "-"], [RAW],
    ]  # fmt: skip
    ends = {ascii(args): call(service.ramherd, args, tmp_path) for args in wrong}
    mistakes = [
        mistake
        for name, done in ends.items()
        if (mistake := find_mistake(name, done, 2 if b"herd" not in done.stdout else 0))
        and done.returncode not in (0, 2)
    ]
    done = call(service.ramherd, ["exec", "--", "sh", "-c", 'printf %s "$1"', "sh", RAW], tmp_path)
    gone = call(service.ramherd, ["exec", "--", RAW], tmp_path)

    assert not mistakes, "\n".join(mistakes)
    assert (done.returncode, done.stdout, gone.returncode) == (0, RAW, 127)
    losses("arguments that are no UTF-8", wrong_ends=len(mistakes))


@pytest.mark.parametrize(
    ("fault", "around", "change"),
    [
        ("nobody who reads what it says", ("", " >/dev/full 2>&-"), adding()),
        ("a raw directory", ("mkdir $'\\xff'; cd $'\\xff'; ", ""), adding(RAW=RAW)),
        ("a locale that is ASCII, no HOME and no PATH", ("", ""),
         lambda env: ASCII(without(b"HOME", b"PATH")(env))),
    ],
)  # fmt: skip
def test_a_service_runs_jobs_all_the_same(
    losses: Losses, tmp_path: Path, fault: str, around: tuple[str, str],
    change: Callable[[Env], Env],
) -> None:  # fmt: skip
    """What it was started with is no reason to lose a job."""
    service = make_service(tmp_path)
    env = {os.fsencode(name): os.fsencode(text) for name, text in service.ramherd.env.items()}
    before, after = around
    script = f'{before}exec "$0" -m ramherd up --pen "$1" --grace 1s{after}'
    process = subprocess.Popen(
        ["/bin/bash", "-c", script, sys.executable, service.ramherd.pen],
        env=change(env), cwd=tmp_path,
    )  # fmt: skip
    try:
        await_(service.socket.exists, "the service is up")
        await_(lambda: call(service.ramherd, ["jobs"], tmp_path).returncode == 0, "it answers")
        done = call(service.ramherd, ["submit", "--wait", "-"], tmp_path)
    finally:
        process.terminate()
        code = process.wait(30)
    assert code == 0
    losses(f"a service with {fault}", jobs=int(done.returncode != 0))
