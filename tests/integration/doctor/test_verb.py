"""`ramherd doctor` as it is called."""

import io
import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ramherd.cli.doctor
from ramherd.cli.main import call
from ramherd.doctor.examine import THEMES
from ramherd.doctor.findings import Finding, Severity
from ramherd.doctor.read.host import Host
from ramherd.doctor.render import render_findings, render_verdict
from support.roots import Root

LINE = "export BUN_JSC_gcMaxHeapSize=32768"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def on(root: Root, monkeypatch: pytest.MonkeyPatch) -> Root:
    """The verb looks at the made-up machine: on the real one --fix would change it."""
    monkeypatch.setattr(ramherd.cli.doctor, "Host", root.host)
    monkeypatch.chdir(root.path)
    return root


def test_the_real_machine_is_looked_at_quickly(tmp_path: Path) -> None:
    """Every theme, 2 s of CPU time at most, and nothing is made by looking."""
    env = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    env["RAMHERD_RUNTIME_DIR"] = str(tmp_path / "runtime")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "ramherd", "doctor", "--json"],
        env=env, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    told = json.loads(done.stdout)
    assert done.stderr == ""
    assert done.returncode == (1 if told["counts"]["problem"] else 0)
    assert sum(told["counts"].values()) == len(told["findings"]) > 25
    assert not [one for one in told["findings"] if one["what"].endswith("could not be checked")]
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2
    assert list(tmp_path.iterdir()) == []


def test_json_says_what_the_text_says(on: Root, capsys: pytest.CaptureFixture[str]) -> None:
    """One object, with the keys that docs/doctor.md names."""
    on.write("home/me/.bashrc", f"{LINE}\n")

    assert call(["doctor", "--json"]) == 0

    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    (found,) = [one for one in told["findings"] if one["check"] == "bun-options"]
    assert set(told) == {"counts", "findings", "fixed"}
    assert set(found) == {"check", "level", "what", "why", "command", "fix", "numbers"}
    assert found["fix"]["undo"].startswith("cp ")
    ram = next(one for one in told["findings"] if one["check"] == "ram")
    assert ram["numbers"]["total_bytes"] == 16 << 30


def test_a_problem_is_exit_1(on: Root, capsys: pytest.CaptureFixture[str]) -> None:
    """Warnings are not."""
    assert call(["doctor"]) == 0
    on.write("proc/sys/vm/overcommit_memory", "2\n")

    assert call(["doctor"]) == 1

    assert capsys.readouterr().out.splitlines()[-1].startswith("1 problem; ")


def test_a_fix_is_asked_for(
    on: Root, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No is no; the step and its undo are shown before."""
    bashrc = on.write("home/me/.bashrc", f"{LINE}\n")
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert call(["doctor", "--fix"]) == 0
    assert bashrc.read_text() == f"{LINE}\n"
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))

    assert call(["doctor", "--fix"]) == 0

    assert bashrc.read_text() == f": # {LINE}\n"
    said = capsys.readouterr().err
    assert said.index("undo: cp") < said.index("do it? [y/N]")
    assert said.endswith("1 of 1 step done\n")


FIVE = """\
export BUN_OPTIONS=--smol
export BUN_JSC_gcMaxHeapSize=1000
export BUN_JSC_maxHeap=1000
export UV_THREADPOOL_SIZE=4
export NODE_MAX_CONCURRENT_REQUESTS=5
"""


def test_a_fix_removes_its_finding(
    on: Root, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fix, look again, none left: also in the shell that had read the file before."""
    on.write("home/me/.bashrc", FIVE)
    variables = dict(line.removeprefix("export ").split("=", 1) for line in FIVE.splitlines())
    monkeypatch.setattr(ramherd.cli.doctor, "Host", lambda: on.host(None, **variables))

    assert call(["doctor", "--fix", "--yes"]) == 0
    said = capsys.readouterr()
    assert call(["doctor", "--json"]) == 0

    assert "ramherd doctor --fix can fix 5" in said.out
    assert said.out.splitlines()[-1].startswith("after the fixes: nothing to do; ")
    assert said.err.endswith("5 of 5 steps done\n")
    told = json.loads(capsys.readouterr().out)
    assert [one for one in told["findings"] if one["level"] != "ok"] == []
    assert sum("in this shell only" in one["what"] for one in told["findings"]) == 5


def test_a_value_of_the_kernel_and_its_file_are_both_fixed(
    on: Root, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The value now, the line that sets it at boot, and a line where the default is too low."""
    on.write("proc/sys/vm/overcommit_memory", "2\n")
    conf = on.write("etc/sysctl.d/99-agents.conf", "vm.swappiness = 5\nvm.overcommit_memory = 2\n")
    on.write("proc/sys/fs/inotify/max_user_instances", "128\n")
    monkeypatch.setattr(ramherd.cli.doctor, "Host", lambda: on.host(uid=0))

    assert call(["doctor", "--fix", "--yes", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert [one for one in told["findings"] if one["level"] != "ok"] == []
    assert conf.read_text() == "vm.swappiness = 5\n# vm.overcommit_memory = 2\n"
    kept = on.path / "etc/sysctl.d/99-ramherd.conf"
    assert kept.read_text() == "fs.inotify.max_user_instances = 1024\n"
    undo = next(one["undo"] for one in told["fixed"] if "inotify" in one["step"])
    subprocess.run(["/bin/sh", "-c", undo.split(" && ")[1]], check=True)
    assert kept.read_text() == ""


def test_options_that_a_build_may_need_are_left(
    on: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    """NODE_OPTIONS is judged by its user, whatever its size."""
    sizes = (200, 4096, 32768)
    lines = [f"export NODE_OPTIONS=--max-old-space-size={size}" for size in sizes]
    bashrc = on.write("home/me/.bashrc", "\n".join(lines))

    assert call(["doctor", "--fix", "--yes", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert bashrc.read_text() == "\n".join(lines)
    assert told["fixed"] == []
    found = [one["command"] for one in told["findings"] if one["check"] == "node-options"]
    assert [command.split("   # ")[1] for command in found] == ["only if no build needs it"] * 3


def test_without_a_terminal_yes_has_to_be_said(
    on: Root, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is done before; with --yes the exit code is that of the machine afterwards."""
    path = on.write("proc/sys/vm/overcommit_memory", "2\n")
    monkeypatch.setattr(ramherd.cli.doctor, "Host", lambda: on.host(uid=0))
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))

    assert call(["doctor", "--fix"]) == 2
    assert "add --yes" in capsys.readouterr().err
    assert path.read_text() == "2\n"
    assert call(["doctor", "--fix", "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["undo"] for one in told["fixed"]] == ["sysctl -w vm.overcommit_memory=2"]
    assert path.read_text() == "0\n"


@pytest.mark.parametrize("argv", [["--yes"], ["--", "true"], ["--json", "--fix"]])
def test_what_makes_no_sense_is_refused(on: Root, argv: list[str]) -> None:
    """Exit 2, before anything is looked at."""
    assert call(["doctor", *argv]) == 2


def test_settings_that_do_not_parse_do_not_stop_the_doctor(on: Root) -> None:
    """`ramherd config` tells what is wrong with them."""
    on.write("ramherd.toml", "no such = thing")

    assert call(["doctor"]) == 0


def test_a_directory_that_was_removed_stops_nobody(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shell may well be why the doctor is called."""
    gone = root.path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(ramherd.cli.doctor, "Host", lambda: replace(root.host(), cwd=Host().cwd))

    assert call(["doctor"]) == 0


def test_the_worst_comes_first() -> None:
    """What is ok only with -v, in one line; no control sequence gets through."""
    findings = [
        Finding("b", Severity.OK, "fine"),
        Finding("c", Severity.HINT, "word " * 40),
        Finding("a", Severity.PROBLEM, "bad \x1b[2J", "because", "do this"),
    ]

    lines = list(render_findings(findings, 100))

    assert lines[:3] == ["problem   a: bad ?[2J", "          because", "          > do this"]
    assert lines[-1] == "1 problem and 1 hint; 1 check is ok (-v lists them)"
    assert "ok        b: fine" not in lines
    assert list(render_findings(findings, 100, with_ok=True))[-2:] == [
        "ok        b: fine", "1 problem and 1 hint; 1 check is ok",
    ]  # fmt: skip
    assert max(map(len, lines)) <= 100
    assert max(map(len, render_findings(findings, 80))) <= 80
    assert list(render_findings(findings, 200)) == lines


@pytest.mark.parametrize(("levels", "verdict"), [
    ("ok", "nothing to do; 1 check is ok (-v lists them)"),
    ("ok ok", "nothing to do; 2 checks are ok (-v lists them)"),
    ("problem problem warning hint", "2 problems, 1 warning and 1 hint; 0 checks are ok"),
])  # fmt: skip
def test_the_verdict_is_one_line(levels: str, verdict: str) -> None:
    """With plurals where they belong."""
    findings = [Finding("x", Severity(level), "x") for level in levels.split()]

    assert render_verdict(findings) == verdict


def test_every_theme_is_looked_at() -> None:
    """A theme that nobody calls checks nothing."""
    assert list(THEMES) == [
        "memory", "virtual", "limits", "pens", "pressure", "heap", "clis", "processes", "written",
        "folders", "state", "clock",
    ]  # fmt: skip
