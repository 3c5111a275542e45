"""A minimal Debian in a directory, to run the commands of README.md in: it has the packages that
README.md names, and nothing else.

Built once (half a minute) and kept as an archive below `$XDG_CACHE_HOME/ramherd-debian`. Commands
run in namespaces of their own: when a command has ended, all its processes and mounts are gone.
Python packages come from files that pip of this machine downloads, with this machine's settings.
"""

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from machines.outside import Ended, MachineFailed, find_program, last_lines
from machines.vm_image import SUITE, choose_place, read_mirror, run_mmdebstrap

ROOT = Path(__file__).parents[2]
# The Python of that suite.
PYTHON = "3.11"
NAMED = re.compile(r"`apt-get install ([\w. -]+)`")
# The directory becomes the root of a mount namespace. /proc is that of the new process namespace,
# whose first process takes all others along when it ends. /dev without what is mounted below it:
# the directory itself may be in /dev/shm.
ENTER = """
set -e
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --bind /dev dev
mount --bind /dev/pts dev/pts
mount -t tmpfs tmpfs dev/shm
pivot_root . .
umount -l .
shift
exec chroot . /usr/bin/env -i "$@"
"""
ENVIRONMENT = (
    "HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PIP_NO_INDEX=1", "PIP_FIND_LINKS=/wheels",
)  # fmt: skip


@dataclass(frozen=True)
class Debian:
    root: Path

    def run(self, command: str, limit_s: float) -> Ended:
        """In the clone, as root."""
        begun_s = time.monotonic()
        done = subprocess.run(
            ["nice", find_program("unshare", "util-linux"), "--mount", "--pid", "--fork",
             "--kill-child", "--propagation", "private", "sh", "-c", ENTER, "sh", str(self.root),
             *ENVIRONMENT, "sh", "-c", f"cd /src/ramherd && {command}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False, timeout=limit_s,
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, "", time.monotonic() - begun_s)


@contextmanager
def minimal_debian() -> Iterator[Debian]:
    """With a copy of this source tree and files for pip; in memory, if there is room."""
    archive = find_archive(read_packages())
    with tempfile.TemporaryDirectory(prefix="ramherd-debian-", dir=choose_place()) as made:
        root = Path(made)
        root.chmod(0o755)
        subprocess.run(["tar", "-xpf", str(archive), "-C", made], check=True)
        copy_source(root / "src/ramherd")
        download_wheels(root / "wheels")
        yield Debian(root)


def read_packages() -> list[str]:
    """Those that README.md names."""
    found = NAMED.search((ROOT / "README.md").read_text())
    assert found is not None, "README.md names no packages"
    return found[1].split()


def find_archive(packages: list[str]) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(base, "ramherd-debian")
    cache.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(" ".join([SUITE, *packages]).encode()).hexdigest()[:16]
    archive = cache / f"{SUITE}-{name}.tar"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            build(archive, packages)
    return archive


def build(archive: Path, packages: list[str]) -> None:
    find_program("mmdebstrap", "mmdebstrap")
    for old in archive.parent.glob("*.tar"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="ramherd-debian-", dir=choose_place()) as made:
        work = Path(made)
        work.chmod(0o755)
        run_mmdebstrap(
            work, "--variant=minbase", f"--include={','.join(packages)}", SUITE,
            f"{work}/root.tar", f"deb {read_mirror()} {SUITE} main",
        )  # fmt: skip
        part = archive.with_suffix(".part")
        shutil.copyfile(work / "root.tar", part)
        part.rename(archive)


def copy_source(to: Path) -> None:
    """What `git clone` would have after a commit: the working tree without ignored files."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def download_wheels(to: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [
        *project["build-system"]["requires"], *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["dev"], "wheel",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:",
         "--python-version", PYTHON, "--dest", str(to), *needed],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise MachineFailed(f"pip download failed:\n{last_lines(done.stdout)}")


def main() -> int:
    """`python -m machines.minimal_debian make test`: any command, with its output at the end."""
    with minimal_debian() as debian:
        ended = debian.run(shlex.join(sys.argv[1:]), limit_s=3600)
    print(ended.out, f"{ended.wall_s:.0f} s", sep="\n")
    return ended.code


if __name__ == "__main__":
    sys.exit(main())
