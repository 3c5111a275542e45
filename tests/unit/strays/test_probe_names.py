"""Which files and sockets are an agent's or the desktop's: by the whole path, never by a part that
a directory of the user may have too.
"""

import pytest

from ramherd.strays.judge.software import AGENTS
from ramherd.strays.read.listeners import SERVICES
from ramherd.strays.read.process_probe import is_output

SESSION = "3ae51d65-7e5a-4e33-ad7f-6b4834f6f6c9"


@pytest.mark.parametrize(
    ("path", "is_agents"),
    [
        (f"/tmp/claude-1000/-home-me-app/{SESSION}/tasks/bupe0xviu.output", True),
        (f"/home/me/claude-work/claude-0/-home-me/{SESSION}/tasks/b.output", True),
        ("/tmp/claude-1000/-home-me-app/tasks/b.output", True),
        ("/home/me/claude-ended/later.log", False),
        ("/home/me/claude-notes/out/tasks/b.output", False),
        ("/home/me/claude-3/app/tasks/b.output", False),
        ("/tmp/claude-1000/-home-me-app/train.log", False),
        (f"/tmp/claude-1000/-home-me-app/{SESSION}/scratchpad/train.log", False),
        ("/home/me/train.log", False),
    ],
)
def test_the_file_of_an_agent_is_known_by_its_whole_path(path: str, is_agents: bool) -> None:
    """A user may call a directory claude-ended, and a log in it is a file of its own."""
    claude = [one for one in AGENTS if one.name == "claude"]

    assert is_output(claude, path) is is_agents


@pytest.mark.parametrize(
    ("name", "is_service"),
    [
        ("/run/user/1000/bus", True),
        ("/run/user/1000/at-spi/bus_0", True),
        ("/run/dbus/system_bus_socket", True),
        ("\0/tmp/dbus-4fMg7h1nyW", True),
        ("\0/tmp/.X11-unix/X0", True),
        ("/run/user/1000/wayland-0", True),
        ("/run/user/1000/pulse/native", True),
        ("/run/user/1000/pipewire-0", True),
        ("/var/run/nscd/socket", True),
        ("/tmp/ssh-XXXXa1b2c3/agent.1234", True),
        ("/run/user/1000/gnupg/S.gpg-agent", True),
        ("/run/user/1000/keyring/ssh", True),
        ("/run/user/1000/vscode-git-5e1f.sock", True),
        ("/run/systemd/journal/stdout", True),
        ("/run/user/1000/systemd/private", True),
        ("/home/me/business/app.sock", False),
        ("/home/me/pulse/app.sock", False),
        ("/home/me/systemd/app.sock", False),
        ("/home/me/agent.d/app.sock", False),
        ("/var/run/docker.sock", False),
        ("/run/postgresql/.s.PGSQL.5432", False),
    ],
)
def test_a_service_of_the_desktop_is_known_by_its_whole_name(name: str, is_service: bool) -> None:
    """Any other connection shows that a process is at work."""
    assert bool(SERVICES.fullmatch(name)) is is_service
