"""Process 1 of User-mode Linux: builds the machine that uml.py describes, and runs one command.

Alone in its directory and run by `python -ISB`: the standard library only.
"""

import ctypes
import errno
import fcntl
import json
import os
import pwd
import select
import signal
import socket
import stat
import struct
import sys
import termios
import traceback
from contextlib import suppress
from typing import Any, NoReturn

# Empty inside: nothing there may be the outer machine's (sockets, locks, half-written files).
FRESH = ("/tmp", "/run", "/dev/shm")
# What the command prints must not be mixed with what the kernel prints.
KERNEL, OUT, ERR = "/dev/tty0", "/dev/tty1", "/dev/tty2"
DISK = "/dev/ubda"
CGROUPS = "/sys/fs/cgroup"
CONTROLLERS = ("memory", "pids", "cpu", "io")
MS_NOSUID, MS_NODEV, MS_BIND, MS_MOVE = 2, 4, 4096, 8192
SYS_FINIT_MODULE = 313
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 1, 64
POWER_OFF = 0x4321FEDC

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    done = libc.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode())
    check(done, f"mount {kind} on {target}")


def put(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def load_module(path: str) -> None:
    with open(path, "rb") as file:
        done = libc.syscall(ctypes.c_long(SYS_FINIT_MODULE), file.fileno(), b"", 0)
        check(done, f"finit_module {path}")


def build_root(plan: dict[str, Any], control: str) -> int:
    """The outer / read-only, below a scratch disk that takes the writes. The only other way out
    is one file for the exit code, opened now and held by us alone.
    """
    stage = "/mnt" if os.path.isdir("/mnt") else "/media"
    mount("stage", stage, "tmpfs")
    for name in ("disk", "root", "control", "kept"):
        os.mkdir(f"{stage}/{name}")
    for path in plan["modules"]:
        load_module(path)
    mount(DISK, f"{stage}/disk", "ext4", 0, "noinit_itable")
    upper, work, root = f"{stage}/disk/upper", f"{stage}/disk/work", f"{stage}/root"
    os.mkdir(upper)
    os.mkdir(work)
    mount("root", root, "overlay", 0, f"lowerdir=/,upperdir={upper},workdir={work}")
    mount("control", f"{stage}/control", "hostfs", 0, control)
    status = os.open(f"{stage}/control/status", os.O_WRONLY | os.O_CREAT, 0o600)
    kept = keep(plan["keep"], root, f"{stage}/kept")
    mount_devices(f"{root}/dev")
    mount("proc", f"{root}/proc", "proc")
    mount("sys", f"{root}/sys", "sysfs")
    mount("cgroup2", root + CGROUPS, "cgroup2", 0, "nsdelegate")
    mount_fresh(root, kept)
    os.chdir(root)
    mount(".", "/", "", MS_MOVE)
    os.chroot(".")
    return status


def keep(paths: list[str], root: str, aside: str) -> dict[str, str]:
    """What is wanted of the places that will be empty, held aside meanwhile."""
    wanted = [path for path in paths if path.startswith(tuple(f"{top}/" for top in FRESH))]
    kept = {path: f"{aside}/{number}" for number, path in enumerate(wanted)}
    for path, place in kept.items():
        os.mkdir(place)
        mount(root + path, place, "", MS_BIND)
    return kept


def mount_devices(dev: str) -> None:
    mount("dev", dev, "devtmpfs", MS_NOSUID)
    links = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
    for name, target in links.items():
        os.symlink(target, f"{dev}/{name}")
    os.mkdir(f"{dev}/pts")
    os.mkdir(f"{dev}/shm")
    mount("devpts", f"{dev}/pts", "devpts", 0, "mode=620,ptmxmode=666")
    os.unlink(f"{dev}/ptmx")
    os.symlink("pts/ptmx", f"{dev}/ptmx")


def mount_fresh(root: str, kept: dict[str, str]) -> None:
    for top in FRESH:
        mode = "mode=755" if top == "/run" else "mode=1777"
        mount(top[1:], root + top, "tmpfs", MS_NOSUID | MS_NODEV, mode)
    # Outer paths first: /tmp/a before /tmp/a/b.
    for path in sorted(kept):
        os.makedirs(root + path, exist_ok=True)
        mount(kept[path], root + path, "", MS_MOVE)


def build_cgroup(owner: tuple[int, int] | None) -> str:
    """The cgroup of the command; of an ordinary user exactly what systemd gives away with
    Delegate=yes: the directory, and the files the kernel names.
    """
    with open(f"{CGROUPS}/cgroup.controllers") as file:
        present = file.read().split()
    enable = " ".join(f"+{name}" for name in CONTROLLERS if name in present)
    put(f"{CGROUPS}/cgroup.subtree_control", enable)
    session = f"{CGROUPS}/session"
    os.mkdir(session)
    if owner:
        os.chown(session, *owner)
        with open("/sys/kernel/cgroup/delegate") as file:
            for name in file.read().split():
                if os.path.exists(f"{session}/{name}"):
                    os.chown(f"{session}/{name}", *owner)
    return session


def make_reachable(path: str) -> None:
    """Let everyone pass through the directories above: Python may be installed in /root. On the
    scratch disk only.
    """
    for start in {path, os.path.realpath(path)}:
        above = start
        while above != "/":
            above = os.path.dirname(above)
            mode = os.stat(above).st_mode
            if not mode & stat.S_IXOTH:
                os.chmod(above, stat.S_IMODE(mode) | stat.S_IXOTH)


def welcome(user: pwd.struct_passwd, plan: dict[str, Any]) -> dict[str, str]:
    """What a login would have made ready, and the environment that says so."""
    runtime = f"/run/user/{user.pw_uid}"
    os.makedirs(runtime, 0o700)
    os.chmod("/run/user", 0o755)
    os.chown(runtime, user.pw_uid, user.pw_gid)
    for path in (f"{plan['cwd']}/.", plan["python"]):
        make_reachable(path)
    return {"HOME": user.pw_dir, "XDG_RUNTIME_DIR": runtime}


def start(plan: dict[str, Any], out: int, err: int) -> int:
    """Forks the command into its cgroup; process 1 finds its end like any other orphan's."""
    user = pwd.getpwnam(plan["user"]) if plan["user"] else None
    session = build_cgroup((user.pw_uid, user.pw_gid) if user else None)
    env = {**plan["env"], **(welcome(user, plan) if user else {})}
    pid = os.fork()
    if pid:
        return pid
    try:
        put(f"{session}/cgroup.procs", "0")
        become(user, out, err)
        os.chdir(plan["cwd"])
        os.execvpe(plan["command"][0], plan["command"], env)
    except OSError as error:
        os.write(2, f"uml: {plan['command'][0]}: {error}\n".encode())
        os._exit(127 if error.errno == errno.ENOENT else 126)


def become(user: pwd.struct_passwd | None, out: int, err: int) -> None:
    os.setsid()
    put("/proc/self/oom_score_adj", "0")
    for number in (signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, 256)
    if user:
        os.setgroups([])
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)


def raw_console(path: str) -> int:
    fd = os.open(path, os.O_WRONLY | os.O_NOCTTY)
    settings = termios.tcgetattr(fd)
    settings[1] &= ~termios.OPOST  # no carriage returns in front of line feeds
    termios.tcsetattr(fd, termios.TCSANOW, settings)
    return fd


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        flags = struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, flags)


def wake_on_child() -> int:
    """A descriptor that is readable when a child has ended."""
    wake, woken = os.pipe()
    for fd in (wake, woken):
        os.set_blocking(fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    return wake


def run(plan: dict[str, Any]) -> int:
    """The command's exit code, when it and all it left behind are gone."""
    wake = wake_on_child()
    (out, guest_out), (err, guest_err) = os.pipe(), os.pipe()
    consoles = {out: raw_console(OUT), err: raw_console(ERR)}
    command = start(plan, guest_out, guest_err)
    os.close(guest_out)
    os.close(guest_err)
    open_ends, code = set(consoles), None
    # What those wrote who are gone is still in the pipes.
    while code is None or open_ends:
        for fd in select.select([wake, *open_ends], [], [])[0]:
            data = os.read(fd, 1 << 16)
            if fd == wake:
                code = reap(command, code)
            elif data:
                write_all(consoles[fd], data)
            else:
                open_ends.remove(fd)
    for console in consoles.values():
        termios.tcdrain(console)
    return code


def reap(command: int, code: int | None) -> int | None:
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if not pid:
            return code
        if pid == command:
            code = os.waitstatus_to_exitcode(how)
            code = code if code >= 0 else 128 - code
            # Also what is frozen: SIGKILL reaches frozen tasks of cgroup v2.
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)


def inside(control: str) -> None:
    # Read before the file systems are built: the control directory is the outer machine's.
    with open(f"{control}/plan") as file:
        plan = json.load(file)
    status = build_root(plan, control)
    put("/proc/self/oom_score_adj", "-1000")
    put("/proc/sys/kernel/hostname", "uml")
    loopback_up()
    os.write(status, str(run(plan)).encode())
    os.fsync(status)


def main() -> NoReturn:
    try:
        inside(sys.argv[1])  # not the last: UML appends console=tty0
    except BaseException:
        with open(KERNEL if os.path.exists(KERNEL) else "/dev/console", "w") as console:
            traceback.print_exc(file=console)
            console.flush()
    finally:
        libc.reboot(POWER_OFF)
    raise SystemExit("the machine is still on")


if __name__ == "__main__" and os.getpid() == 1:
    main()
