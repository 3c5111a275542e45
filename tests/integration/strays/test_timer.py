"""`ramherd reap --every 15m --install`: with programs that stand in for systemctl and crontab.

The real systemd is met in `make test-vm`; here it counts what a service manager is told, and that
all of it is taken back.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.conftest import Ramherd, make_ramherd

SYSTEMCTL = '#!/bin/sh\necho "$@" >> "$LOG"\nexit ${SYSTEMCTL_EXIT:-0}\n'
CRONTAB = """#!/bin/sh
case $1 in
  -l) cat "$TAB" 2>/dev/null ;;
  -r) rm "$TAB" ;;
  -) cat > "$TAB" ;;
esac
"""


@dataclass
class Home:
    ramherd: Ramherd
    path: Path

    def add(self, name: str, script: str) -> None:
        program = self.path / "bin" / name
        program.write_text(script)
        program.chmod(0o755)

    def tree(self) -> dict[str, str]:
        """Every file and directory of the user, but for ramherd's state."""
        return {
            str(path.relative_to(self.path)): path.read_text() if path.is_file() else ""
            for path in sorted(self.path.rglob("*"))
            if "state" not in path.relative_to(self.path).parts
        }


@pytest.fixture
def home(tmp_path: Path) -> Home:
    path = tmp_path / "home"
    (path / "bin").mkdir(parents=True)
    ramherd = make_ramherd(path, "polling")
    tools = ":".join(part for part in os.environ["PATH"].split(":") if part)
    ramherd.env |= {
        "HOME": str(path), "PATH": f"{path}/bin:{tools}", "LOG": str(tmp_path / "log"),
        "TAB": str(path / "crontab"), "XDG_CONFIG_HOME": str(path / ".config"),
    }  # fmt: skip
    return Home(ramherd, path)


def test_a_systemd_timer_is_made_and_undone(home: Home, tmp_path: Path) -> None:
    """Directories that were made for it too."""
    home.add("systemctl", SYSTEMCTL)
    before = home.tree()

    done = home.ramherd.run("reap", "--every", "15m", "--stray-grace", "5m", "--install")

    assert done.returncode == 0, done.stderr
    units = home.path / ".config/systemd/user"
    assert "OnUnitActiveSec=900s" in (units / "ramherd-reap.timer").read_text()
    service = (units / "ramherd-reap.service").read_text()
    assert '"reap" "--yes" "--stray-grace" "5m"' in service
    assert service in done.stdout
    assert "enable --now ramherd-reap.timer" in (tmp_path / "log").read_text()
    undone = home.ramherd.run("reap", "--uninstall")
    assert undone.returncode == 0, undone.stderr
    assert home.tree() == before
    assert "disable --now ramherd-reap.timer" in (tmp_path / "log").read_text()


def test_a_crontab_is_as_before_when_it_is_undone(home: Home) -> None:
    """Where systemd does not answer; a second install replaces the first."""
    home.add("systemctl", "#!/bin/sh\nexit 1\n")
    home.add("crontab", CRONTAB)
    (home.path / "crontab").write_text("0 1 * * * backup\n")
    before = home.tree()

    for every in ("15m", "90m"):
        done = home.ramherd.run("reap", "--every", every, "--install")
        assert done.returncode == 0, done.stderr

    lines = (home.path / "crontab").read_text().splitlines()
    assert lines[0] == "0 1 * * * backup"
    assert [line.split(" *")[0] for line in lines[2:-1]] == [
        "0 0,3,6,9,12,15,18,21", "30 1,4,7,10,13,16,19,22",
    ]  # fmt: skip
    assert home.ramherd.run("reap", "--uninstall").returncode == 0
    assert home.tree() == before


def test_no_crontab_before_is_none_after(home: Home) -> None:
    """Not an empty one."""
    home.add("systemctl", "#!/bin/sh\nexit 1\n")
    home.add("crontab", '#!/bin/sh\n[ "$1" != -l ] || [ -f "$TAB" ] || exit 1\n' + CRONTAB[10:])
    home.ramherd.run("reap", "--every", "1h", "--install")
    assert (home.path / "crontab").exists()

    home.ramherd.run("reap", "--uninstall")

    assert not (home.path / "crontab").exists()


def test_a_timer_that_cannot_be_started_can_be_undone(home: Home) -> None:
    """What was written is taken back by the command that the hint names."""
    home.add(
        "systemctl", '#!/bin/sh\n[ "$2" = show-environment ] || { echo no bus >&2; exit 1; }\n'
    )
    before = home.tree()

    done = home.ramherd.run("reap", "--every", "15m", "--install")

    assert (done.returncode, "no bus" in done.stderr) == (3, True)
    assert home.ramherd.run("reap", "--uninstall").returncode == 0
    assert home.tree() == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--install"], "--install needs --every TIME"),
        (["--every", "15m"], "a timer takes --every TIME --install, or --uninstall"),
        (["--every", "20s", "--install"], "20s is below 1m00s"),
        (["--every", "soon", "--install"], "--every: 'soon' is not a duration"),
        (["--every", "15m", "--install", "--yes"], "cannot be used with a timer"),
        (
            ["--every", "15m", "--stray-grace", "x", "--install"],
            "--stray-grace: 'x' is not a duration",
        ),
    ],
)
def test_a_mistake_is_said_and_nothing_is_written(
    home: Home, args: list[str], message: str
) -> None:
    """Exit code 2."""
    home.add("systemctl", SYSTEMCTL)
    before = home.tree()

    done = home.ramherd.run("reap", *args)

    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert home.tree() == before


def test_without_any_timer_it_says_so(home: Home) -> None:
    """Exit code 3, and what to do."""
    home.add("systemctl", "#!/bin/sh\nexit 1\n")
    home.ramherd.env["PATH"] = f"{home.path}/bin"

    done = home.ramherd.run("reap", "--every", "15m", "--install")

    assert done.returncode == 3
    assert "no timer here" in done.stderr
    assert home.ramherd.run("reap", "--uninstall").stdout == "no timer was installed\n"
