"""The unit of systemd and the agent of launchd, as text."""

import plistlib
import shlex

from ramherd.act.user_manager import quote_unit
from ramherd.service.unit_file import render_plist, render_unit

COMMAND = ["/opt/my python", "-m", "ramherd", "up", "--on-alert", 'say "50%" $HOME \\o/']
ENV = {"XDG_STATE_HOME": "/home/me/a b", "PATH": "/bin"}


def test_words_are_whole_for_systemd() -> None:
    """Spaces, quotes, and what systemd would replace."""
    assert quote_unit('a "b" 5% $X \\') == '"a \\"b\\" 5%% $$X \\\\"'


def test_the_unit_keeps_runs_when_the_service_dies() -> None:
    """And sets limits of its own; settings are read again with a reload."""
    lines = render_unit(COMMAND, ENV).splitlines()

    assert {"KillMode=process", "Delegate=yes", "Restart=on-failure"} <= set(lines)
    assert "ExecReload=/bin/kill -HUP $MAINPID" in lines
    assert 'Environment="XDG_STATE_HOME=/home/me/a b"' in lines
    (start,) = [line for line in lines if line.startswith("ExecStart=")]
    words = shlex.split(start.removeprefix("ExecStart="))
    assert [word.replace("%%", "%").replace("$$", "$") for word in words] == COMMAND


def test_the_agent_is_a_property_list() -> None:
    """With every word as it was."""
    made = plistlib.loads(render_plist(COMMAND, {**ENV, "A": "<&>"}).encode())

    assert made["ProgramArguments"] == COMMAND
    assert made["EnvironmentVariables"] == {**ENV, "A": "<&>"}
    assert made["AbandonProcessGroup"] is True
