"""`ramherd exec` around the program: admission, environment, options, imports, ordinary users."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from integration.act.pens.test_ordinary_user import (
    NOBODY,
    home,
    python_for_everybody,
    run_as_nobody,
)
from integration.conftest import TAG, Ramherd, await_, need, ours
from integration.exec.test_exec import NAP_S, STUBBORN, Open, exec_of, our_naps, run, terminal
from ramherd.act.pens.selection import POLLED
from ramherd.core.policies import Policy
from support.terminals import open_terminal

__all__ = ["home", "terminal"]  # fixtures: pytest finds them by their names here


def test_the_environment_of_a_run(each_ramherd: Ramherd) -> None:
    """As for any run; TMPDIR is there, and gone afterwards with what is in it."""
    names = "$RAMHERD_RUN $RAMHERD_JOB $RAMHERD_HERD $RAMHERD_ATTEMPT $TMPDIR"
    code = f'echo x > "$TMPDIR/file"; echo {names}'
    run_id, job, herd, attempt, tmp = run(each_ramherd, "--", "sh", "-c", code).stdout.split()
    assert len({run_id, job, herd}) == 3
    assert attempt == "1"
    assert tmp == str(each_ramherd.state / f"ramherd/runs/{run_id}/tmp")
    assert not Path(tmp).exists()


def test_logs_says_that_a_session_keeps_none(ramherd: Ramherd) -> None:
    """One clear line; an older herd's jobs are still found."""
    ramherd.json([{"command": "echo older", "name": "older"}])
    run(ramherd, "--", "sh", "-c", "echo on the terminal")
    done = ramherd.run("logs", "sh")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ramherd: sh was an interactive session: it keeps no log\n")
    assert ramherd.run("logs", "older").stdout == "older\n"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["true", "-v"], "exec needs -- before the command\n  hint: ramherd exec -- true -v"),
        (["--memroy=1GiB", "--", "true"], "'--memroy'\n  hint: did you mean '--memory'?"),
        (["--", ""], "no command after --\n  hint: ramherd exec -- claude"),
        ([], "no command after --\n  hint: ramherd exec -- claude"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_has_a_hint(ramherd: Ramherd, words: list[str], what: str) -> None:
    """Exit 2, one line and what was meant."""
    done = ramherd.run("exec", *words)
    assert done.returncode == 2
    assert what in done.stderr


def machine_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_no_wait_says_the_numbers(each_ramherd: Ramherd) -> None:
    """Exit 3 when it does not fit now, and when it never will."""
    for share, what in ((0.79, "--no-wait was given"), (2.0, "more than the whole budget")):
        memory = f"{int(machine_bytes() * share) >> 20}MiB"
        done = run(each_ramherd, "--no-wait", "--memory", memory, "--", "true")
        assert done.returncode == 3
        assert done.stderr.startswith("ramherd: true: needs ")
        assert "GiB" in done.stderr
        assert what in done.stderr


def test_waiting_for_memory_can_be_left(each_ramherd: Ramherd, terminal: Open) -> None:
    """One line says why it waits; Ctrl-C leaves with 130."""
    memory = f"{int(machine_bytes() * 0.79) >> 20}MiB"
    window = terminal([*exec_of(each_ramherd, "--memory", memory), "true"], each_ramherd)
    window.expect("ramherd: true waits: needs ")
    window.type("\x03")
    assert window.wait() == 130


def test_a_start_imports_the_standard_library_alone(each_ramherd: Ramherd) -> None:
    """And no module of the supervisor, the service or its API: they serve many runs, not one."""
    code = "from ramherd.cli.main import main; main()"
    imported = read_imports(each_ramherd, code, *exec_of(each_ramherd)[3:], "true")
    assert "ramherd.exec.session" in imported
    packages = {name.split(".")[0] for name in imported - read_imports(each_ramherd, "pass")}
    assert packages - sys.stdlib_module_names == {"ramherd"}
    # It would take 25 ms with its classes: `core/record.py`.
    assert "dataclasses" not in packages
    rooms = {name.split(".")[1] for name in imported if name.startswith("ramherd.")}
    assert not rooms & {"supervisor", "service", "api"}


def read_imports(ramherd: Ramherd, code: str, *args: str) -> set[str]:
    command = [sys.executable, "-X", "importtime", "-c", code, *args]
    done = subprocess.run(command, env=ramherd.env, capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


@pytest.mark.skipif(os.getuid() != 0, reason="we are an ordinary user already: all tests show it")
def test_a_session_of_an_ordinary_user(home: Path) -> None:
    """On a terminal, without any rights: its exit code, its leftovers, and a polled limit."""
    env = {
        "PATH": os.environ["PATH"], "HOME": str(home), TAG: os.environ[TAG],
        "PYTHONPATH": str(home / "lib"), "RAMHERD_RUNTIME_DIR": str(home / "run"),
    }  # fmt: skip
    command = [python_for_everybody(), "-m", "ramherd", "exec", "--"]
    code = f"setsid env -i sleep {NAP_S} & read line; echo got $line; exit 7"
    window = open_terminal([*command, "sh", "-c", code], env, user=NOBODY)
    try:
        window.type("hello\n")
        window.expect("got hello")
        assert window.wait() == 7
    finally:
        window.close()
    assert not our_naps()
    hog = [command[0], "-c", "import time; b = b'x' * (200 << 20); time.sleep(300)"]
    limited = [*command[:-1], "--memory-limit", "64MiB", "--", *hog]
    done = run_as_nobody(limited, env=env, cwd=home)
    assert done.returncode == 137
    polled, killed = done.stderr.splitlines()
    assert polled == f"ramherd: {POLLED}"
    assert "killed at its memory_limit of 64 MiB" in killed


def test_settings_are_those_of_run(ramherd: Ramherd, tmp_path: Path) -> None:
    """A user's file, the environment and a flag in turn, each stronger than the one before."""
    file = tmp_path / "config/ramherd/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('budget = "300MiB"\npids_limit = 111\n')
    ramherd.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")

    def refused(*options: str) -> str:
        done = run(ramherd, "--memory", "1GiB", *options, "--", "true")
        assert done.returncode == 3
        return done.stderr.splitlines()[0]

    refusal = "ramherd: true: needs 1 GiB, more than the whole budget of"
    assert refused() == f"{refusal} 300 MiB"
    ramherd.env["RAMHERD_BUDGET"] = "200MiB"
    assert refused() == f"{refusal} 200 MiB"
    assert refused("--budget", "100MiB") == f"{refusal} 100 MiB"


@pytest.mark.skipif(not os.access("/sys/fs/cgroup/pids", os.W_OK), reason="no cgroup v1 of ours")
def test_the_pen_has_the_limits_of_the_settings(ramherd: Ramherd) -> None:
    """`pids_limit` and `memory_limit`, given or not."""
    show = (
        "cat /sys/fs/cgroup/pids$(grep :pids: /proc/self/cgroup | cut -d: -f3)/pids.max"
        " /sys/fs/cgroup/memory$(grep :memory: /proc/self/cgroup | cut -d: -f3)"
        "/memory.limit_in_bytes"
    )
    pids, memory = run(ramherd, "--", "sh", "-c", show).stdout.split()
    assert (pids, int(memory) > machine_bytes()) == ("4096", True)
    ramherd.env |= {"RAMHERD_PIDS_LIMIT": "99", "RAMHERD_MEMORY_LIMIT": "64MiB"}
    assert run(ramherd, "--", "sh", "-c", show).stdout.split() == ["99", str(64 << 20)]


def test_grace_of_the_settings(each_ramherd: Ramherd) -> None:
    """RAMHERD_GRACE is how long a program has after TERM."""
    each_ramherd.env["RAMHERD_GRACE"] = "0.3s"
    herd = each_ramherd.start(*exec_of(each_ramherd)[3:], "sh", "-c", STUBBORN + " sleep 300")
    await_(lambda: len(ours("RAMHERD_RUN")) >= 4, "the program and its children")
    start = time.monotonic()
    herd.signal(signal.SIGTERM)
    assert herd.wait() == 128 + signal.SIGTERM
    assert time.monotonic() - start < Policy().grace_s - 2


def test_an_abort_of_node_is_named(each_ramherd: Ramherd) -> None:
    """With the peak; whatever node printed about its heap is on the terminal above it."""
    need("node", "nodejs")
    fill = "a = []; for (;;) a.push({ x: Math.random() })"
    done = run(each_ramherd, "--", "node", "--max-old-space-size=128", "-e", fill)
    assert done.returncode == 134
    line = done.stderr.splitlines()[-1]
    assert line.startswith("ramherd: node: terminated by SIGABRT (peak ")


def test_a_polled_limit_is_looked_at_ten_times_a_second(ramherd: Ramherd) -> None:
    """A program that grows by 100 MiB/s is seen at most some 10 MiB over its limit."""
    grow = "import time\nb = []\nwhile True: b.append(b'x' * (1 << 20)); time.sleep(0.01)"
    done = ramherd.run(
        "exec", "--pen", "polling", "--memory-limit", "64MiB", "--", sys.executable, "-c", grow
    )
    assert done.returncode == 137
    peak = re.search(r"memory_limit of 64 MiB \(peak ([\d.]+) MiB\)", done.stderr)
    assert peak is not None
    assert 64 <= float(peak[1]) < 128
