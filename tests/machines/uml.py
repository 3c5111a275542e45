"""A machine with cgroup v2: User-mode Linux over this machine's own files.

A kernel as an ordinary process: no KVM, no image, no root; it boots in two seconds. It sees this
machine's / with the same paths, environment and working directory. What is written there goes to
a scratch disk that is thrown away: nothing here changes.

Inside (uml_init.py): cgroup v2 with memory, pids, cpu and io on /sys/fs/cgroup; the command in the
cgroup /session, as root or as a user to whom that is delegated; tmpfs on /tmp, /run and /dev/shm;
everything else on ext4 (a real page cache; files on tmpfs would be charged as shmem).
Not inside: pressure files, more than one processor, systemd, the network.

    PYTHONPATH=tests .venv/bin/python -m machines.uml COMMAND...
"""

import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from machines.outside import (
    Ended,
    MachineFailed,
    end_group,
    find_program,
    last_lines,
    read_all,
    start_guard,
)

INIT = Path(__file__).with_name("uml_init.py")
# What belongs to this machine's session and would be wrong inside.
DROPPED_ENV = {
    "TMPDIR", "TMP", "TEMP", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK",
}  # fmt: skip
# Loaded by hand: they are not where modprobe looks, and there may be no modprobe.
MODULES = ("fs/overlayfs/overlay", "net/unix/unix_diag")
SCRATCH_BYTES = 4 << 30
TURNS = itertools.count()
# No journal: the disk does not outlive the run. No lazy initialisation in the middle of a test.
MKE2FS = (
    "-q", "-F", "-t", "ext4", "-O", "^has_journal,uninit_bg", "-N", "65536", "-m", "0",
    "-E", "lazy_itable_init=1,nodiscard,root_owner=0:0",
)  # fmt: skip


def run_in_uml(
    command: Sequence[str],
    *,
    env: dict[str, str] | None = None,
    user: str | None = None,
    memory_mib: int = 1536,
    limit_s: float = 120,
) -> Ended:
    """The command in the working directory, as root, or as a user whose cgroup is its own."""
    # On disk, not in memory: the scratch disk may grow. What the kernel's command line names
    # must have no blanks: nothing in here has.
    with tempfile.TemporaryDirectory(prefix="uml-", dir="/var/tmp") as control:
        prepare(Path(control))
        plan = make_plan(list(command), env or {}, user)
        with open(os.open(f"{control}/plan", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            json.dump(plan, file)
        return boot(Path(control), memory_mib, limit_s)


def prepare(control: Path) -> None:
    shutil.copyfile(INIT, control / "init.py")
    (control / "python").symlink_to(os.path.realpath(sys.executable))
    with (control / "scratch").open("wb") as disk:
        disk.truncate(SCRATCH_BYTES)
    mke2fs = find_program("mke2fs", "e2fsprogs")
    subprocess.run([mke2fs, *MKE2FS, str(control / "scratch")], check=True)


def make_plan(command: list[str], env: dict[str, str], user: str | None) -> dict[str, Any]:
    outer = {name: value for name, value in os.environ.items() if name not in DROPPED_ENV}
    return {
        "command": command,
        "cwd": os.getcwd(),
        "env": {**outer, "TERM": "dumb", **env},
        "user": user,
        "python": sys.executable,
        # Shown inside although they lie below /tmp or the like.
        "keep": sorted({os.getcwd(), sys.prefix, sys.base_prefix}),
        "modules": find_modules(),
    }


def find_modules() -> list[str]:
    uml = find_program("linux.uml", "user-mode-linux")
    asked = subprocess.run([uml, "--version"], capture_output=True, text=True, check=True)
    top = Path("/usr/lib/uml/modules", asked.stdout.strip(), "kernel")
    modules = [top / f"{name}.ko" for name in MODULES]
    for module in modules:
        if not module.exists():
            raise MachineFailed(f"{module} is missing: apt-get install --reinstall user-mode-linux")
    return [str(module) for module in modules]


def boot(control: Path, memory_mib: int, limit_s: float) -> Ended:
    begin = time.monotonic()
    # Pipes of our own: UML makes the descriptors it is given non-blocking, also for everyone who
    # shares them.
    (out, guest_out), (err, guest_err) = os.pipe(), os.pipe()
    with (control / "boot.log").open("wb") as log:
        machine = start(control, memory_mib, (log.fileno(), guest_out, guest_err))
    os.close(guest_out)
    os.close(guest_err)
    dismiss_guard = start_guard(machine.pid, control)
    try:
        printed = read_all((out, err), limit_s)
    finally:
        end_group(machine.pid)
        machine.wait()
        dismiss_guard()
        os.close(out)
        os.close(err)
    return Ended(read_status(control), *printed, time.monotonic() - begin)


def start(control: Path, memory_mib: int, consoles: tuple[int, ...]) -> "subprocess.Popen[bytes]":
    """Its processes, one for each address space inside, do not all die with the first: they get
    a group of their own.
    """
    # On one processor: kernel and process take turns through ptrace, and waking another one each
    # time makes memory and system calls 4 to 7 times slower (20 instead of 140 MB/s when memory
    # is touched first).
    # Each in its turn: two machines at a time must not share one.
    allowed = sorted(os.sched_getaffinity(0))
    processor = allowed[next(TURNS) % len(allowed)]
    # It keeps each of our files open that was read inside, and an ordinary user has 1024.
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return subprocess.Popen(
        ["prlimit", f"--nofile={most_files}", "taskset", "--cpu-list", str(processor),
         find_program("linux.uml", "user-mode-linux"), f"mem={memory_mib}M",
         f"uml_dir={control}/", "umid=machine", f"ubd0={control}/scratch",
         "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "panic=-1", "quiet",
         *(f"con{number}=null,fd:{fd}" for number, fd in enumerate(consoles)), "con=null",
         "ssl=null",
         f"init={control}/python", "--", "-ISB", f"{control}/init.py", str(control)],
        stdin=subprocess.DEVNULL, stdout=consoles[0], stderr=consoles[0], pass_fds=consoles,
        start_new_session=True,
        env={**os.environ, "TMPDIR": memory_directory(memory_mib << 20), **preload(control)},
    )  # fmt: skip


def preload(control: Path) -> dict[str, str]:
    """On a processor with AMX, UML dies before its init unless it has help (xstate.c)."""
    if " amx_tile" not in Path("/proc/cpuinfo").read_text():
        return {}
    library = control / "xstate.so"
    compiler = find_program("cc", "build-essential")
    source = INIT.with_name("xstate.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}


def memory_directory(size_bytes: int) -> str:
    """UML keeps its memory in a mapped file: where that may be executable, and there is room.

    In a container /dev/shm is often 64 MB or noexec: it would die of SIGBUS in mid-test.
    """
    for path in ("/dev/shm", tempfile.gettempdir(), "/var/tmp"):
        with suppress(OSError):
            fs = os.statvfs(path)
            has_room = fs.f_bavail * fs.f_frsize > size_bytes + (64 << 20)
            if has_room and os.access(path, os.W_OK) and not fs.f_flag & os.ST_NOEXEC:
                return path
    raise MachineFailed("no room for the machine's memory in /dev/shm, $TMPDIR and /var/tmp")


def read_status(control: Path) -> int:
    try:
        return int((control / "status").read_text())
    except (OSError, ValueError):
        said = last_lines((control / "boot.log").read_text(errors="replace"))
        raise MachineFailed(f"the machine ended before the command did:\n{said}") from None


def main() -> None:
    ended = run_in_uml(sys.argv[1:])
    sys.stdout.write(ended.out)
    sys.stderr.write(ended.err)
    sys.exit(ended.code)


if __name__ == "__main__":
    main()
