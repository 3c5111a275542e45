"""The disk that vm.py boots: Debian bookworm with systemd, python3, and the user `herd`.

Built once (half a minute) from the mirror that apt uses here, and kept below
`$XDG_CACHE_HOME/ramherd-vm`, some 250 MB; a boot never writes to it.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from machines.outside import SBIN, MachineFailed, find_program, last_lines

SUITE = "bookworm"
CUSTOMIZE = Path(__file__).with_name("vm_customize.sh")
# A user manager and python3; what a fresh Debian has besides, as far as the doctor's commands need
# it (systemd-oomd is not started).
INCLUDE = (
    "systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,python3,"
    "procps,kmod,sudo,cron,vim-tiny,systemd-timesyncd,systemd-oomd"
)
DISK_BYTES = 4 << 30
# dpkg writes thousands of small files: 25 s in memory instead of 35.
MEMORY, MEMORY_BYTES = "/dev/shm", 1500 << 20
TOOLS = {
    "mmdebstrap": "mmdebstrap",
    "genext2fs": "genext2fs",
    "resize2fs": "e2fsprogs",
    **({} if os.getuid() == 0 else {"newuidmap": "uidmap"}),
}


def find_image() -> Path:
    """The directory with `vmlinuz`, `initrd` and `root.img`, built if these files changed."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(base, "ramherd-vm")
    cache.mkdir(parents=True, exist_ok=True)
    made_from = Path(__file__).read_bytes() + CUSTOMIZE.read_bytes()
    image = cache / f"{SUITE}-{hashlib.sha256(made_from).hexdigest()[:16]}"
    # Two at once would build twice, and the second would remove what the first boots.
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not image.is_dir():
            build(image)
    return image


def build(image: Path) -> None:
    for program, package in TOOLS.items():
        find_program(program, package)
    with tempfile.TemporaryDirectory(prefix="ramherd-vm-", dir=choose_place()) as made:
        work = Path(made)
        # mmdebstrap may run the hook as another user of a user namespace.
        work.chmod(0o755)
        shutil.copy(CUSTOMIZE, work / "customize")
        bootstrap(work, read_mirror())
        take(work / "root.img", image)


def choose_place() -> str | None:
    try:
        fs = os.statvfs(MEMORY)
    except OSError:
        return None
    has_room = os.access(MEMORY, os.W_OK) and fs.f_bavail * fs.f_frsize > MEMORY_BYTES
    return MEMORY if has_room else None


def read_mirror() -> str:
    """By what a repository says of itself: others call their suites after Debian's as well."""
    asked = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)",
         "Created-By: Packages"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for line in asked.stdout.splitlines():
        origin, label, mirror = line.split("|", 2)
        if origin == label == "Debian":
            return mirror
    raise MachineFailed("apt knows no Debian mirror: apt-get update")


def proxy_options() -> Iterator[str]:
    for key in ("Acquire::http::Proxy", "Acquire::https::Proxy"):
        asked = subprocess.run(
            ["apt-config", "dump", "--format", "%v", key],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        if asked.stdout:
            yield f'--aptopt={key} "{asked.stdout}"'


def bootstrap(work: Path, mirror: str) -> None:
    run_mmdebstrap(
        work, "--variant=essential", "--format=ext2", f"--include={INCLUDE}",
        f"--customize-hook={work}/customize", SUITE, f"{work}/root.img",
        f"deb {mirror} {SUITE} main",
    )  # fmt: skip


def run_mmdebstrap(work: Path, *args: str) -> None:
    """`work` is for temporary files. Without manuals, translations and documentation."""
    done = subprocess.run(
        ["nice", "mmdebstrap", "--quiet", "--aptopt=Acquire::Languages \"none\"", *proxy_options(),
         *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "locale", "doc")),
         *args],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        # When it fails, mmdebstrap kills its whole process group: not ours.
        env={**os.environ, "TMPDIR": str(work)}, start_new_session=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise MachineFailed(f"mmdebstrap failed:\n{last_lines(done.stdout)}")


def take(disk: Path, image: Path) -> None:
    """Copied beside its place, then renamed: an image is whole or not there."""
    for old in image.parent.glob(f"{SUITE}-*"):
        shutil.rmtree(old)
    part = image.with_suffix(".part")
    part.mkdir()
    for name in ("vmlinuz", "initrd"):
        call("debugfs", "-R", f"dump /boot/{name} {part / name}", str(disk))
        if not (part / name).stat().st_size:
            raise MachineFailed(f"no {name} in the image")
    # Room to write (the file stays sparse), and extents for what is written: genext2fs makes
    # plain ext2.
    os.truncate(disk, DISK_BYTES)
    call("tune2fs", "-O", "extent,dir_index", str(disk))
    call("e2fsck", "-fy", str(disk), good=3)
    call("resize2fs", str(disk))
    call("cp", "--sparse=always", str(disk), str(part / "root.img"))
    part.rename(image)


def call(*command: str, good: int = 0) -> None:
    env = {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:{SBIN}"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode > good:
        raise MachineFailed(f"{command[0]} failed:\n{last_lines(done.stdout + done.stderr)}")
