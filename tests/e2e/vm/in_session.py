"""What an ordinary user gets on a systemd machine. Run in the machine of machines/vm.py only: its
name is none that pytest looks for.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from integration.conftest import await_, ours
from ramherd.core.procid import Process
from ramherd.system.procfs import read_process, read_processes

RAMHERD = (sys.executable, "-m", "ramherd")
SCOPE = ("systemd-run", "--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes")
# A round takes 2 s where QEMU emulates the processor.
EXEC_ROUNDS = 10
MOST_OF_POLLING = 1.5
# A child over the limit; what it holds is touched page by page.
HOLD = "b = bytearray(200 << 20); b[::4096] = b'x' * len(b[::4096])"


def summary_of(*args: str, stdin: str = "") -> dict[str, Any]:
    done = subprocess.run(
        [*RAMHERD, *args, "--json"], input=stdin, text=True, capture_output=True, check=False
    )
    assert done.stdout, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def scopes() -> list[str]:
    command = [
        "systemctl",
        "--user",
        "list-units",
        "--type=scope",
        "--all",
        "--plain",
        "--no-legend",
    ]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    return [line.split()[0] for line in done.stdout.splitlines() if line.startswith("run-")]


def systemctl(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["systemctl", "--user", *args], text=True, capture_output=True, check=False
    )


def assert_nothing_left() -> None:
    assert not ours()
    assert not scopes()
    assert not list(Path("/sys/fs/cgroup/user.slice").rglob("ramherd-*"))


def test_a_session_has_no_rights_of_its_own() -> None:
    """The shell's cgroup is root's, so what follows does come from the user manager."""
    own = Path("/proc/self/cgroup").read_text().strip().removeprefix("0::/")
    assert not os.access(Path("/sys/fs/cgroup", own, "cgroup.subtree_control"), os.W_OK)


def test_a_drill_has_kernel_limits_through_a_scope() -> None:
    """ramherd moves into a scope of its own, and nothing of that is left."""
    summary = summary_of("drill", "--agents", "6")
    assert (summary["pen"], summary["done"], summary["oom_kills"]) == ("cgroup2", 6, 0)
    assert_nothing_left()


def test_the_kernel_holds_a_memory_limit() -> None:
    """A run over its memory_limit is killed there and then."""
    job = {"memory": "32MiB", "memory_limit": "64MiB", "command": [sys.executable, "-c", HOLD]}
    summary = summary_of("run", "-", stdin=json.dumps(job))
    result = summary["results"][0]
    assert (summary["pen"], result["end"], summary["limit_kills"]) == ("cgroup2", "limit_kill", 1)
    assert result["peak_bytes"] <= 64 << 20
    assert_nothing_left()


def test_every_promise_of_a_pen_in_a_scope() -> None:
    """The conformance suite, as the user who asked for a delegated scope."""
    suite = "tests/integration/act/pens/test_pens.py"
    pytest = (sys.executable, "-m", "pytest", suite, "-k", "cgroup2")
    done = subprocess.run(
        [*SCOPE, *pytest], env={**os.environ, "RAMHERD_TEST_STORMS": "2"},
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout
    assert_nothing_left()


def test_exec_has_kernel_limits_through_a_scope() -> None:
    """Its pen has a limit of processes and of memory, and nothing of the scope is left."""
    show = "cd /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup) && cat pids.max memory.max"
    limits = ("--pids-limit", "99", "--memory-limit", "64MiB")
    for given, found in (((), ["4096", "max"]), (limits, ["99", str(64 << 20)])):
        done = exec_(*given, "--", "sh", "-c", show)
        assert (done.returncode, done.stdout.split()) == (0, found), done.stderr
    done = exec_("--memory-limit", "64MiB", "--", sys.executable, "-c", HOLD)
    assert done.returncode == 137
    assert "killed at its memory_limit of 64 MiB (peak 64 MiB)" in done.stderr
    assert_nothing_left()


def test_without_a_manager_exec_takes_the_next_pen() -> None:
    """A limit is polled then, and a line says so."""
    socket = Path(f"/run/user/{os.getuid()}/systemd/private")
    aside = socket.with_name("private.aside")
    socket.rename(aside)
    try:
        done = exec_("--memory-limit", "64MiB", "--", "true")
    finally:
        aside.rename(socket)
    assert done.returncode == 0
    assert done.stderr.startswith("ramherd: limits are polled: ")


def test_exec_in_a_scope_takes_little_longer_than_polling() -> None:
    """In turns, so that both meet the same machine; the first of each makes bytecode and store. The
    least of each counts: a busy host makes the emulated processor slower, never faster.
    """
    took: dict[str, list[float]] = {"auto": [], "polling": []}
    for _round in range(EXEC_ROUNDS + 1):
        for pen, times in took.items():
            start = time.monotonic()
            assert exec_("--pen", pen, "--", "true").returncode == 0
            times.append(time.monotonic() - start)
    auto, polling = (min(times[1:]) * 1000 for times in took.values())
    ratio = f"{auto / polling:.2f} of {MOST_OF_POLLING}"
    print(f"exec -- true, least of {EXEC_ROUNDS}: auto {auto:.0f} ms, polling {polling:.0f} ms,")
    print(f"auto / polling {ratio}")
    assert auto <= MOST_OF_POLLING * polling
    assert_nothing_left()


def exec_(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*RAMHERD, "exec", *args], text=True, capture_output=True, check=False)


def test_polling_still_works() -> None:
    """Asked for by name it takes no scope."""
    summary = summary_of("drill", "--agents", "2", "--pen", "polling")
    assert (summary["pen"], summary["done"]) == ("polling", 2)
    assert_nothing_left()


def test_reap_on_a_timer_of_the_user_manager() -> None:
    """It is started by it, and gone when it is taken back."""
    made = subprocess.run([*RAMHERD, "reap", "--every", "15m", "--install"], check=False)
    assert made.returncode == 0
    assert systemctl("is-active", "ramherd-reap.timer").stdout == "active\n"
    started = systemctl("start", "ramherd-reap.service")
    assert started.returncode == 0, systemctl("status", "ramherd-reap.service").stdout

    undone = subprocess.run([*RAMHERD, "reap", "--uninstall"], check=False)

    assert undone.returncode == 0
    assert systemctl("cat", "ramherd-reap.timer").returncode != 0


def test_orphans_below_the_user_manager_are_reaped(tmp_path: Path) -> None:
    """They are not children of process 1: a parent of that number would find none of them."""
    program = tmp_path / "rust-analyzer"
    shutil.copy("/bin/sleep", program)
    spec = json.dumps([{"argv": [str(program), "1000"], "env": {}}])
    client = [sys.executable, str(Path(__file__).parents[1] / "zoo/client.py"), spec]
    service = ("systemd-run", "--user", "--quiet", "--collect", "--unit=client")
    subprocess.run([*service, "-p", "KillMode=process", "--", *client], check=True)
    server: Process = await_(lambda: find(program.name), "the server")
    before = server.ppid
    systemctl("kill", "--signal=KILL", "--kill-whom=main", "client.service")
    await_(lambda: (now := read_process(server.id.pid)) and now.ppid != before, "its client's end")
    manager = read_process(read_ppid(server.id.pid))
    assert manager is not None
    assert (manager.name, manager.id.pid != 1) == ("systemd", True)

    told = summary_of("reap", "--stray-grace", "0", "--yes")

    assert [row["pid"] for row in told["ended"]] == [server.id.pid]
    assert find(program.name) is None


def find(name: str) -> Process | None:
    return next((proc for proc in read_processes() if proc.is_alive and proc.name == name), None)


def read_ppid(pid: int) -> int:
    proc = read_process(pid)
    return 0 if proc is None else proc.ppid
