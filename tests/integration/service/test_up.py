"""`ramherd up -d` and `ramherd up --install`: the service without a terminal."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import Ramherd, await_, make_ramherd, ours, pens
from ramherd.client.client import Client, is_running

# What systemd does with the unit, as far as it matters here: it starts ExecStart with nothing of
# the environment of its caller but what the unit names.
SYSTEMCTL = """#!{python}
import os, shlex, signal, subprocess, sys
unit, pid = os.environ["XDG_CONFIG_HOME"] + "/systemd/user/ramherd.service", {pid!r}
words = sys.argv[2:]
open({log!r}, "a").write(" ".join(words) + "\\n")
if words[0] == "is-active":
    sys.exit(0 if os.path.exists(pid) else 3)
if words[0] == "restart":
    lines = [line.partition("=") for line in open(unit).read().splitlines()]
    given = [shlex.split(value)[0] for key, _, value in lines if key == "Environment"]
    env = dict(pair.split("=", 1) for pair in given)
    (command,) = [value for key, _, value in lines if key == "ExecStart"]
    if os.path.exists(pid):
        old = int(open(pid).read())
        os.kill(old, signal.SIGTERM)
        while os.path.exists(f"/proc/{{old}}"):
            pass
    made = subprocess.Popen(
        shlex.split(command), env={{**env, **{tag!r}, "PATH": "/usr/bin:/bin"}}, cwd="/",
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open({err!r}, "ab"),
        start_new_session=True,
    )
    open(pid, "w").write(str(made.pid))
if words[0] == "disable":
    os.kill(int(open(pid).read()), signal.SIGTERM)
"""


@pytest.fixture
def quiet(tmp_path: Path) -> Iterator[Ramherd]:
    """A ramherd without a service; one that the test starts is ended."""
    made = make_ramherd(tmp_path, pens()[0])
    yield made
    for pid in ours():
        if b"\0up\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGTERM)
    await_(lambda: not ours(), "everything of it has ended")


def socket_of(ramherd: Ramherd) -> Path:
    return Path(ramherd.env["RAMHERD_RUNTIME_DIR"]) / "api.sock"


def test_the_service_starts_in_the_background(quiet: Ramherd) -> None:
    """It answers when the command returns. A second call finds it, and starts nothing."""
    flags = ("--pen", quiet.pen, "--json")
    first = json.loads(quiet.run("up", "-d", *flags).stdout)
    second = json.loads(quiet.run("up", "-d", *flags).stdout)

    assert (first["started"], second["started"]) == (True, False)
    assert first["pid"] == second["pid"]
    assert Client(socket_of(quiet)).herds() == []
    assert Path(first["log"]).read_text().startswith("ramherd: up,")
    assert "running already (pid" in quiet.run("up", "-d").stdout
    assert os.getsid(first["pid"]) == first["pid"]


def test_a_service_that_does_not_start_says_why(quiet: Ramherd) -> None:
    """With its own error; the hint shows the whole log."""
    lock = quiet.state / "ramherd/service.lock"
    lock.mkdir(parents=True)
    done = quiet.run("up", "-d")

    assert done.returncode == 3
    assert f"the service did not start: cannot lock {lock}" in done.stderr
    assert f"hint: cat {quiet.state}/ramherd/service.log" in done.stderr


def add_systemctl(ramherd: Ramherd, tmp_path: Path) -> Path:
    """Returns the file with what it was told."""
    (tmp_path / "bin").mkdir()
    program, log = tmp_path / "bin/systemctl", tmp_path / "systemctl.log"
    tag = {name: text for name, text in ramherd.env.items() if name.startswith("RAMHERD_TEST")}
    program.write_text(
        SYSTEMCTL.format(
            python=sys.executable, pid=str(tmp_path / "pid"), log=str(log), tag=tag,
            err=str(tmp_path / "up.err"),
        )
    )  # fmt: skip
    program.chmod(0o755)
    ramherd.env["PATH"] = f"{tmp_path}/bin:{ramherd.env['PATH']}"
    return log


def test_an_installed_service_is_running(quiet: Ramherd, tmp_path: Path) -> None:
    """And is stopped by --uninstall. The unit has the flags of the call, and not its PATH."""
    told = add_systemctl(quiet, tmp_path)
    flags = ("--port", "0", "--pen", quiet.pen, "--drain", "-j", "3")
    done = quiet.run("up", *flags, "--install")
    unit = Path(quiet.env["XDG_CONFIG_HOME"]) / "systemd/user/ramherd.service"

    assert (done.returncode, done.stderr) == (0, "")
    assert "the service is running" in done.stdout
    assert is_running(socket_of(quiet))
    text = unit.read_text()
    assert f'"up" "--drain" "--port" "0" "--max-parallel=3" "--pen={quiet.pen}"' in text
    assert "PATH" not in text.replace("RAMHERD", "")
    again = json.loads(quiet.run("up", "--pen", quiet.pen, "--install", "--json").stdout)
    assert again["path"] == str(unit)
    assert "--drain" not in unit.read_text()
    assert quiet.run("up", "--uninstall").returncode == 0
    assert not unit.exists()
    await_(lambda: not ours(), "the service has ended")
    words = [line.split()[0] for line in told.read_text().splitlines()]
    start = ["show-environment", "is-active", "daemon-reload", "enable", "restart"]
    assert words == [*start, *start, "disable", "daemon-reload"]
    assert quiet.run("up", "--uninstall").returncode == 2


def test_nothing_is_installed_where_nothing_could_start_it(quiet: Ramherd, tmp_path: Path) -> None:
    """No systemd that answers; or a service that systemd did not start."""
    (tmp_path / "none").mkdir()
    path, quiet.env["PATH"] = quiet.env["PATH"], str(tmp_path / "none")
    without = quiet.run("up", "--install")
    quiet.env["PATH"] = path
    add_systemctl(quiet, tmp_path)
    quiet.run("up", "-d", "--pen", quiet.pen)
    beside = quiet.run("up", "--install")

    assert without.returncode == 3
    assert "hint: ramherd up -d" in without.stderr
    assert beside.returncode == 2
    assert "a service is running that the service manager did not start" in beside.stderr
    assert not (Path(quiet.env["XDG_CONFIG_HOME"]) / "systemd").exists()


def test_a_service_in_front_prints_events_as_json(quiet: Ramherd) -> None:
    """One object a line, with the reason as it is stored."""
    front = quiet.start("up", "--json", "--pen", quiet.pen)
    await_(lambda: is_running(socket_of(quiet)), "it is up")
    client = Client(socket_of(quiet))
    client.wait(client.submit([{"name": "a", "command": ["true"], "cwd": "/"}], env={}))
    await_(lambda: '"job_done"' in front.out.read_text(), "the end is printed")
    front.signal(signal.SIGINT)

    assert front.wait() == 0
    events = [json.loads(line) for line in front.out.read_text().splitlines()]
    (done,) = [event for event in events if event["kind"] == "job_done"]
    assert (done["name"], done["reason"]["why"]) == ("a", "exited")


def test_ways_to_start_exclude_each_other(quiet: Ramherd) -> None:
    """Nothing is started."""
    done = quiet.run("up", "-d", "--install")

    assert (done.returncode, "exclude each other" in done.stderr) == (2, True)
