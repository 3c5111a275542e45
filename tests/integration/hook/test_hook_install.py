"""`ramherd hook install` and `uninstall`: a settings file that is not ours."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd
from ramherd.hook.claude_settings import EVENTS

OTHERS = """{
    "model": "opus",
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check"}]}],
        "Stop": []
    },
    "ünicode": 1.50
}"""


@pytest.fixture
def settings(ramherd: Ramherd, tmp_path: Path) -> Path:
    """The user's; HOME is another place, so that nothing of this machine is touched."""
    ramherd.env["CLAUDE_CONFIG_DIR"] = str(tmp_path / "claude")
    ramherd.env["HOME"] = str(tmp_path / "home")
    (tmp_path / "claude").mkdir()
    return tmp_path / "claude/settings.json"


def hook(ramherd: Ramherd, *args: str) -> str:
    done = ramherd.run("hook", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fail(ramherd: Ramherd, *args: str) -> str:
    done = ramherd.run("hook", *args)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


def hooks_in(path: Path) -> dict[str, Any]:
    hooks: dict[str, Any] = json.loads(path.read_text())["hooks"]
    return hooks


def test_other_hooks_are_kept_and_the_file_comes_back(ramherd: Ramherd, settings: Path) -> None:
    """Byte for byte, with its mode."""
    settings.write_text(OTHERS)
    settings.chmod(0o640)
    hook(ramherd, "install", "claude")

    hooks = hooks_in(settings)
    assert set(hooks) == set(EVENTS)
    assert hooks["PreToolUse"][0]["hooks"][0]["command"] == "./check"
    assert hooks["PreToolUse"][1]["matcher"] == "Task|Agent"
    assert '"ünicode": 1.5' in settings.read_text()
    assert settings.stat().st_mode & 0o777 == 0o640

    hook(ramherd, "uninstall", "claude")
    assert settings.read_text() == OTHERS
    assert settings.stat().st_mode & 0o777 == 0o640
    assert os.listdir(settings.parent) == ["settings.json"]


@pytest.mark.parametrize("text", ["", " \n", "{}", '{"hooks": {}}\n', '{"hooks":{"Stop":[]}}'])
def test_next_to_nothing_comes_back_too(ramherd: Ramherd, settings: Path, text: str) -> None:
    """And is not touched where there is no hook to take out."""
    settings.write_text(text)
    assert "no hook is installed" in hook(ramherd, "uninstall", "claude")
    assert settings.read_text() == text
    hook(ramherd, "install", "claude")
    hook(ramherd, "uninstall", "claude")
    assert settings.read_text() == text


def test_to_install_twice_changes_nothing(ramherd: Ramherd, settings: Path) -> None:
    """And the bytes from before the first time come back."""
    settings.write_text(OTHERS)
    hook(ramherd, "install", "claude")
    once = settings.read_bytes()
    assert "already" in hook(ramherd, "install", "claude")
    assert settings.read_bytes() == once
    hook(ramherd, "install", "claude", "--hook-wait", "1m")
    hook(ramherd, "uninstall", "claude")
    assert settings.read_text() == OTHERS
    assert "no hook is installed" in hook(ramherd, "uninstall", "claude")


def test_claude_gives_the_hook_longer_than_it_waits(ramherd: Ramherd, settings: Path) -> None:
    """At its own timeout Claude would let the subagent run; it may wait for a day until others of
    its session have ended.
    """
    hook(ramherd, "install", "claude", "--hook-wait", "90s")
    (entry,) = hooks_in(settings)["PreToolUse"]
    assert entry["hooks"][0]["timeout"] == 150 + 24 * 3600
    assert " 86550 " in entry["hooks"][0]["command"]
    hook(ramherd, "uninstall", "claude")


def test_what_others_changed_meanwhile_stays(ramherd: Ramherd, settings: Path) -> None:
    """Only our hooks are taken out then."""
    settings.write_text(OTHERS)
    hook(ramherd, "install", "claude")
    changed = json.loads(settings.read_text())
    changed["model"] = "haiku"
    changed["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "./bell"}]})
    settings.write_text(json.dumps(changed))
    hook(ramherd, "uninstall", "claude")

    left = json.loads(settings.read_text())
    assert left["model"] == "haiku"
    assert "ramherd" not in settings.read_text()
    assert left["hooks"]["PreToolUse"] == json.loads(OTHERS)["hooks"]["PreToolUse"]
    assert left["hooks"]["Stop"] == [{"hooks": [{"type": "command", "command": "./bell"}]}]


def test_a_change_and_a_second_install_lose_nothing(ramherd: Ramherd, settings: Path) -> None:
    """The bytes from before are too old then: what comes back has the change."""
    settings.write_text("{}")
    hook(ramherd, "install", "claude")
    changed = json.loads(settings.read_text()) | {"model": "haiku"}
    settings.write_text(json.dumps(changed))
    hook(ramherd, "install", "claude", "--hook-wait", "1m")
    hook(ramherd, "uninstall", "claude")
    assert json.loads(settings.read_text()) == {"model": "haiku"}


def test_a_file_that_was_not_there_is_gone_again(ramherd: Ramherd, settings: Path) -> None:
    """Also the directories that were made for it; an empty file stays one."""
    settings.parent.rmdir()
    hook(ramherd, "install", "claude")
    assert set(hooks_in(settings)) == set(EVENTS)
    hook(ramherd, "uninstall", "claude")
    assert not settings.parent.exists()

    settings.parent.mkdir()
    settings.touch()
    hook(ramherd, "install", "claude")
    hook(ramherd, "uninstall", "claude")
    assert settings.read_bytes() == b""


def test_a_link_stays_a_link(ramherd: Ramherd, settings: Path, tmp_path: Path) -> None:
    """The file it leads to is changed: people keep their settings in a repository."""
    (tmp_path / "dotfiles.json").write_text(OTHERS)
    settings.symlink_to("../dotfiles.json")
    hook(ramherd, "install", "claude")
    assert settings.is_symlink()
    assert set(hooks_in(tmp_path / "dotfiles.json")) == set(EVENTS)
    hook(ramherd, "uninstall", "claude")
    assert settings.is_symlink()
    assert (tmp_path / "dotfiles.json").read_text() == OTHERS


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"model": ', "is not JSON: Expecting value"),
        ("// mine\n{}", "is not JSON"),
        ('{"model": 1, "model": 2}', "is not JSON: key 'model' stands there twice"),
        ("[]", "does not look like settings"),
        ('{"hooks": ["PreToolUse"]}', "does not look like settings"),
        ('{"hooks": {"Stop": [{"hooks": ["./bell"]}]}}', "does not look like settings"),
    ],
)
@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_what_is_not_understood_is_left_alone(
    ramherd: Ramherd, settings: Path, verb: str, text: str, what: str
) -> None:
    """One line that names the file, and not a byte of it changed."""
    settings.write_text(text)
    said = fail(ramherd, verb, "claude")
    assert said.startswith(f"ramherd: {settings} {what}")
    assert settings.read_text() == text


def test_bytes_that_are_no_text_are_left_alone(ramherd: Ramherd, settings: Path) -> None:
    """As above."""
    settings.write_bytes(b'{"a": "\xff"}')
    assert "is not UTF-8" in fail(ramherd, "install", "claude")
    assert settings.read_bytes() == b'{"a": "\xff"}'


def test_a_directory_in_its_place_is_said(ramherd: Ramherd, settings: Path) -> None:
    """What, and which."""
    settings.mkdir()
    assert f"cannot read {settings}: Is a directory" in fail(ramherd, "install", "claude")


def test_a_project_has_settings_of_its_own(
    ramherd: Ramherd, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the directory we are in; the user's are left alone."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    hook(ramherd, "install", "claude", "--project")
    assert not settings.exists()
    shown = hook(ramherd, "status").splitlines()
    assert shown[0] == f"{settings}: not installed"
    assert shown[1] == f"{tmp_path}/project/.claude/settings.json: installed"
    assert shown[2] == "no session with the hook runs"
    hook(ramherd, "uninstall", "claude", "--project")
    assert os.listdir(tmp_path / "project") == []


def test_status_tells_what_is_missing(ramherd: Ramherd, settings: Path) -> None:
    """A part of it, or another ramherd's: both are mended by one more install."""
    hook(ramherd, "install", "claude")
    changed = json.loads(settings.read_text())
    del changed["hooks"]["Stop"]
    settings.write_text(json.dumps(changed))
    assert "installed in part, without Stop" in hook(ramherd, "status")
    for entries in changed["hooks"].values():
        for entry in entries:
            command = entry["hooks"][0]["command"]
            entry["hooks"][0]["command"] = "/old/bin/" + command.rpartition("/bin/")[2]
    changed["hooks"]["Stop"] = changed["hooks"]["SessionEnd"]
    settings.write_text(json.dumps(changed))
    assert "installed by another ramherd" in hook(ramherd, "status")
    hook(ramherd, "install", "claude")
    assert f"{settings}: installed\n" in hook(ramherd, "status")
    assert all(len(entries) == 1 for entries in hooks_in(settings).values())


def test_a_hook_that_does_not_work_is_not_installed(ramherd: Ramherd, settings: Path) -> None:
    """It says why, and settings stay as they are."""
    ramherd.env["RAMHERD_RUNTIME_DIR"] = "/proc/nowhere"
    done = ramherd.run("hook", "install", "claude")
    assert done.returncode == 1
    assert "the hook does not work, so it was not installed" in done.stderr
    assert not settings.exists()
