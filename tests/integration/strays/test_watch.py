"""`ramherd watch` on the machine as it is: the census, and alerts while it happens."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd, await_
from integration.service.conftest import Service, service
from integration.strays.test_timer import CRONTAB, Home, home

__all__ = ["home", "service"]
# The pages of a shell alone are shared with all others, so its share depends on how many run: the
# agent holds memory of its own, well above the mark of these tests.
TOOL = "held=$(head -c 8000000 /dev/zero | tr '\\0' x); sleep 1000 & echo up; wait"
WARN_AT = ("--warn-at", "4MiB")


@pytest.fixture
def claude(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A program of that name, with a tool below it, in a directory of its own."""
    program, project = tmp_path / "claude", tmp_path / "shop"
    project.mkdir()
    shutil.copy("/bin/bash", program)
    process = subprocess.Popen(
        [program, "-c", TOOL], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
        start_new_session=True, cwd=project,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def look(ramherd: Ramherd, *flags: str) -> dict[str, Any]:
    done = ramherd.run("watch", "--json", "--warn-memory", "100", *flags)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row_of(found: dict[str, Any], pid: int) -> dict[str, Any]:
    (row,) = [one for one in found["processes"] if one["pid"] == pid]
    return dict(row)


def alerts_of(found: dict[str, Any], pid: int) -> list[str]:
    return [one["text"] for one in found["alerts"] if one["pid"] == pid]


def test_a_session_is_in_the_census_after_its_end(
    ramherd: Ramherd, claude: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    """Who, its memory now and at most, since when, and where; then when it ended."""
    live = row_of(look(ramherd), claude.pid)
    assert (live["software"], live["kind"], live["run"]) == ("claude", "agent", "")
    assert live["cwd"] == str(tmp_path / "shop")
    assert live["resume"] == f"cd {tmp_path}/shop && claude --continue"
    assert 0 < live["memory_bytes"] <= live["highest_bytes"]
    assert live["ended_s"] is None
    os.killpg(claude.pid, signal.SIGKILL)
    claude.wait()

    found = look(ramherd)

    ended = row_of(found, claude.pid)
    assert ended["ended_s"] == found["at_s"]
    assert ended["points"]
    text = ramherd.run("watch").stdout
    assert "ended in the last 7 days, the newest first:" in text
    assert f"claude agent in {tmp_path}/shop" in text


def test_a_large_session_is_told_once(
    ramherd: Ramherd, claude: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    """By on_alert, as an event, with the command that saves it; not again at the next look."""
    told = tmp_path / "told"
    flags = (*WARN_AT, "--on-alert", f'echo "$RAMHERD_ALERT" >> {told}')
    (text,) = alerts_of(look(ramherd, *flags), claude.pid)
    again = alerts_of(look(ramherd, *flags), claude.pid)
    reasons = [json.loads(line)["reason"] for line in told.read_text().splitlines()]

    assert text.endswith(f"end it, then: cd {tmp_path}/shop && claude --continue")
    assert again == []
    assert [one["what"] for one in reasons if one["pid"] == claude.pid] == [text]
    with closing(sqlite3.connect(ramherd.state / "ramherd/ramherd.db")) as db:
        events = db.execute("SELECT reason FROM events WHERE kind = 'alert'").fetchall()
    assert [one for (reason,) in events if (one := json.loads(reason)["what"]) == text] == [text]
    # Below the lower mark for a moment, the alert is not over.
    look(ramherd, "--warn-at", "1GiB")
    assert alerts_of(look(ramherd, *flags), claude.pid) == []


def test_a_notice_where_there_is_a_desktop(
    ramherd: Ramherd, claude: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    """By notify-send; one that fails is no error."""
    programs = tmp_path / "programs"
    programs.mkdir()
    notify = programs / "notify-send"
    notify.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/notices\nexit 1\n')
    notify.chmod(0o755)
    ramherd.env |= {
        "PATH": f"{programs}:{ramherd.env['PATH']}", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/none",
    }  # fmt: skip

    (text,) = alerts_of(look(ramherd, *WARN_AT), claude.pid)

    assert f"-- ramherd {text}\n" in (tmp_path / "notices").read_text()


def test_a_timer_of_its_own(home: Home) -> None:
    """Beside that of reap, and taken back alone."""
    home.add("systemctl", "#!/bin/sh\nexit 1\n")
    home.add("crontab", CRONTAB)
    for verb in ("reap", "watch"):
        done = home.ramherd.run(verb, "--every", "15m", "--install")
        assert done.returncode == 0, done.stderr
    table = Path(home.ramherd.env["TAB"]).read_text()
    assert "ramherd watch --quiet" in table
    assert home.ramherd.run("watch", "--uninstall").returncode == 0

    left = Path(home.ramherd.env["TAB"]).read_text()

    assert "watch" not in left
    assert "ramherd reap --yes" in left


@pytest.mark.parametrize(("flags", "said"), [
    (("--every", "0.2s"), "--every: 0.2s is below 1.0s"),
    (("--every", "soon"), "--every: "),
    (("--install",), "--install needs --every TIME"),
    (("--install", "--every", "1m", "--json"), "--json and --all cannot be used with a timer"),
])  # fmt: skip
def test_mistakes(ramherd: Ramherd, flags: tuple[str, ...], said: str) -> None:
    """One line each, with a hint."""
    done = ramherd.run("watch", *flags)

    assert done.returncode == 2
    assert said in done.stderr


def test_the_service_watches(service: Service, claude: "subprocess.Popen[bytes]") -> None:
    """Every `watch_every`, with its own `on_alert`."""
    service.stop()
    service.ramherd.env |= {"RAMHERD_WATCH_EVERY": "1s", "RAMHERD_WARN_AT": "4MiB"}
    service.start()

    query = f"SELECT count(*) FROM census WHERE pid = {claude.pid}"
    await_(lambda: service.rows(query) == [(1,)], "the service has looked")

    alerts = service.rows("SELECT reason FROM events WHERE kind = 'alert'")
    assert any(json.loads(reason)["pid"] == claude.pid for (reason,) in alerts)
