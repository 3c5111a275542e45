"""What a user learns without looking: agents that stall, and the end of a herd."""

import json
import sys
from pathlib import Path

import pytest

from integration.conftest import Ramherd, await_
from integration.service.conftest import Service
from integration.service.talker import Talker
from support.terminals import open_terminal


@pytest.fixture
def talker(tmp_path: Path) -> Talker:
    return Talker(tmp_path)


def test_a_silent_agent_is_reported_once(ramherd: Ramherd, talker: Talker) -> None:
    """With the tool that it is in: on the screen, as an event, and to `on_alert`."""
    alert = talker.here / "alert"
    flags = (
        "run", "--agent", "claude", "--agent-program", str(talker.program), "--stall-after", "1s",
        "--on-alert", f'echo "$RAMHERD_ALERT" >>{alert}', "--pen", ramherd.pen, "do it",
    )  # fmt: skip
    running = ramherd.start(*flags)
    await_(lambda: alert.exists() and alert.read_text(), "the alert")
    line = "the agent has printed nothing for 1"
    await_(lambda: line in running.out.read_text(), "the line")
    talker.go()

    assert running.wait() == 0
    said = json.loads(alert.read_text())
    assert (said["kind"], said["reason"]["why"]) == ("alert", "stalled")
    assert said["reason"]["doing"] == "while it runs the tool Bash"
    assert running.out.read_text().count(line) == 1


def test_a_silent_agent_of_the_service_is_marked(service: Service, talker: Talker) -> None:
    """In `ramherd jobs` as well."""
    service.stop()
    service.start("--stall-after", "1s")
    herd = service.submit(
        {"name": "a", "agent": "claude", "prompt": "do it", "agent_program": str(talker.program)}
    )
    await_(lambda: "turn 1 Bash silent for" in service.ramherd.run("jobs").stdout, "the mark")
    assert service.client.snapshot()["counters"]["alerts"] == 1
    talker.go()
    service.client.wait(herd)


def fake_program(folder: Path, name: str, script: str) -> str:
    """A PATH on which the program comes first."""
    folder.mkdir()
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(folder)


def test_a_notice_on_the_desktop(ramherd: Ramherd, tmp_path: Path) -> None:
    """One line with what was done. A program that fails or hangs changes nothing."""
    folder = fake_program(tmp_path / "bin", "notify-send", f'echo "$@" >>{tmp_path}/notice; exit 1')
    ramherd.env["PATH"] = f"{folder}:{ramherd.env['PATH']}"
    ramherd.env["DISPLAY"] = ":77"
    done = ramherd.run("run", "--notify", "--", "test", "{}", stdin="a\n\n")

    notice = (tmp_path / "notice").read_text()
    assert done.returncode == 0, done.stderr
    assert notice.startswith("--app-name=ramherd ramherd 1 of 1 job done in ")


def test_the_bell_where_there_is_no_desktop(service: Service) -> None:
    """Of the terminal, whether the herd runs here or in the service."""
    ramherd = service.ramherd
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"):
        ramherd.env.pop(name, None)
    for flags in (("--own",), ()):
        job = ramherd.state.with_name("job.jsonl")
        job.write_text('{"command": "true"}\n')
        command = [sys.executable, "-m", "ramherd", "run", *flags, "--notify", str(job)]
        window = open_terminal(command, {**ramherd.env, "TERM": "xterm"})
        window.expect("1 of 1 job done")
        window.expect("\a")

        assert window.wait() == 0
        window.close()
