"""Limits of the kernel for all users (/proc/sys) and of this process (ulimit)."""

from ramherd.doctor.facts import Kernel, Limits
from ramherd.doctor.read.host import Host
from ramherd.system.procfs import read_sysctl, read_ulimits, sysctl_path

NAMES = (
    "vm.overcommit_memory", "vm.oom_kill_allocating_task", "fs.file-max",
    "fs.inotify.max_user_watches", "fs.inotify.max_user_instances",
)  # fmt: skip
KEPT_IN = "etc/sysctl.d/99-ramherd.conf"


def read_kernel(host: Host) -> Kernel:
    values = {name: read_sysctl(name, host.proc) for name in NAMES}
    return Kernel(
        values={name: int(value) for name, value in values.items() if value.isdigit()},
        paths={name: sysctl_path(name, host.proc) for name in NAMES},
        open_files=int((read_sysctl("fs.file-nr", host.proc).split() or ["0"])[0]),
        is_root=host.uid == 0,
        kept_in=str(host.root / KEPT_IN),
    )


def read_limits(host: Host) -> Limits:
    """From /proc/self/limits, which a made-up root can have too."""
    return parse_limits(read_ulimits(host.proc))


def parse_limits(text: str) -> Limits:
    rows = {line[:26].strip(): line[26:].split()[:2] for line in text.splitlines()[1:]}

    def limit(name: str) -> tuple[int | None, int | None]:
        soft, hard = rows.get(name, ("unlimited", "unlimited"))
        return parse_limit(soft), parse_limit(hard)

    return Limits(
        open_files=limit("Max open files"),
        processes=limit("Max processes"),
        address_space_bytes=limit("Max address space")[0],
        data_bytes=limit("Max data size")[0],
    )


def parse_limit(word: str) -> int | None:
    return int(word) if word.isdigit() else None  # "unlimited"
