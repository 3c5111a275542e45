"""A machine with systemd and cgroup v2: Debian in QEMU, and one command as an ordinary user.

The package, its tests and pytest are copied to `HOME` in the machine. The command (vm_job.py)
runs as after a login: session scope, XDG_RUNTIME_DIR, a user manager with linger. Only what it
prints and its exit code come back: the machine's disk is thrown away. Everything takes ten times
as long as on a processor.

    PYTHONPATH=tests .venv/bin/python -m machines.vm COMMAND...
"""

import importlib.util
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from machines.outside import (
    Ended,
    MachineFailed,
    end_group,
    find_program,
    last_lines,
    read_all,
    start_guard,
)
from machines.vm_image import find_image

PROJECT = Path(__file__).parents[2]
JOB = Path(__file__).with_name("vm_job.py")
HOME, UID = "srv/ramherd", 1000
PYTHON = "/usr/bin/python3"
# pytest, the API's libraries and what they import: plain Python, so it does not matter whether our
# version is theirs.
PACKAGES = (
    "pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments",
    "starlette", "uvicorn", "anyio", "h11", "click", "idna", "typing_extensions",
)  # fmt: skip
MEMORY = "1G"
# Not kvm when /dev/kvm is there: in machines that are virtual themselves it may open and then not
# run.
ACCELERATION = "tcg,thread=multi,tb-size=256"
# no_timer_check: on a busy host the emulated timer may be late, and the kernel panics at its check.
KERNEL_OPTIONS = (
    "console=ttyS0 quiet panic=-1 mitigations=off psi=1 no_timer_check systemd.show_status=no"
)
PORTS = ("out", "err", "status")


def run_in_vm(command: Sequence[str], *, limit_s: float = 420) -> Ended:
    """The command in `HOME`, with ramherd and pytest on its path."""
    image = find_image()
    with tempfile.TemporaryDirectory(prefix="vm-") as control:
        pack(list(command), Path(control, "job"))
        return boot(image, Path(control), limit_s)


def pack(command: list[str], target: Path) -> None:
    """The second disk: a tar of the project, and of the program that the machine starts."""
    plan = {
        "command": command,
        "cwd": f"/{HOME}",
        "env": {
            "PYTHONPATH": f"/{HOME}/src:/{HOME}/packages",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    }
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        add(tar, "run/job/plan", json.dumps(plan).encode())
        add(tar, "run/job/start", JOB.read_bytes())
        for name in ("src", "tests", "pyproject.toml"):
            tar.add(PROJECT / name, f"{HOME}/{name}", filter=for_user)
        for package in PACKAGES:
            found = importlib.util.find_spec(package)
            if found is None or found.origin is None:
                raise MachineFailed(f"cannot find the package {package}: make setup")
            file = Path(found.origin)
            source = file.parent if file.name == "__init__.py" else file
            tar.add(source, f"{HOME}/packages/{source.name}", filter=for_user)


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o755
    tar.addfile(entry, io.BytesIO(content))


def for_user(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    entry.uid = entry.gid = UID
    entry.uname = entry.gname = ""
    return None if Path(entry.name).name == "__pycache__" else entry


def boot(image: Path, control: Path, limit_s: float) -> Ended:
    begin = time.monotonic()
    (out, guest_out), (err, guest_err) = os.pipe(), os.pipe()
    places = (f"/dev/fd/{guest_out}", f"/dev/fd/{guest_err}", f"{control}/status")
    machine = subprocess.Popen(
        [*command_line(image, control), *port_options(places)],
        stdin=subprocess.DEVNULL, pass_fds=(guest_out, guest_err), start_new_session=True,
    )  # fmt: skip
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


def command_line(image: Path, control: Path) -> list[str]:
    """Not -M microvm, a second faster: without HPET the kernel cannot measure its clock by
    emulation, and one boot in five hung.
    """
    disks = {
        "root": f"file={image}/root.img,snapshot=on,cache=unsafe",
        "job": f"file={control}/job,read-only=on",
    }
    return [
        find_program("qemu-system-x86_64", "qemu-system-x86"),
        "-M", "q35,usb=off,sata=off,smbus=off,vmport=off", "-accel", ACCELERATION,
        "-cpu", "max", "-smp", "2", "-m", MEMORY,
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-serial", f"file:{control}/boot.log",
        "-kernel", f"{image}/vmlinuz", "-initrd", f"{image}/initrd", "-append", KERNEL_OPTIONS,
        *(word for name, disk in disks.items() for word in
          ("-drive", f"if=none,id={name},format=raw,{disk}",
           "-device", f"virtio-blk-pci,drive={name}")),
        "-device", "virtio-serial-pci",
    ]  # fmt: skip


def port_options(places: Sequence[str]) -> list[str]:
    return [
        word
        for name, place in zip(PORTS, places, strict=True)
        for word in (
            *("-chardev", f"file,id={name},path={place}"),
            *("-device", f"virtserialport,chardev={name},name={name}"),
        )
    ]


def read_status(control: Path) -> int:
    try:
        return int((control / "status").read_text())
    except (OSError, ValueError):
        said = last_lines((control / "boot.log").read_text(errors="replace"))
        raise MachineFailed(f"the machine ended before the command did:\n{said}") from None


def main() -> None:
    ended = run_in_vm(sys.argv[1:])
    sys.stdout.write(ended.out)
    sys.stderr.write(ended.err)
    sys.exit(ended.code)


if __name__ == "__main__":
    main()
