"""Limits of the kernel for everybody (/proc/sys) and of this process (ulimit)."""

from ramherd.doctor.facts import Kernel, Limits
from ramherd.doctor.read.host import Host

NAMES = (
    "vm.overcommit_memory", "vm.oom_kill_allocating_task", "fs.file-max",
    "fs.inotify.max_user_watches", "fs.inotify.max_user_instances",
)  # fmt: skip


def read_kernel(host: Host) -> Kernel:
    paths = {name: f"proc/sys/{name.replace('.', '/')}" for name in NAMES}
    values = {name: host.number(path) for name, path in paths.items()}
    return Kernel(
        values={name: value for name, value in values.items() if value is not None},
        paths={name: str(host.root / path) for name, path in paths.items()},
        open_files=int((host.text("proc/sys/fs/file-nr").split() or ["0"])[0]),
        is_root=host.uid == 0,
    )


def read_limits(host: Host) -> Limits:
    """From /proc/self/limits, which also a made-up root can have."""
    return parse_limits(host.text("proc/self/limits"))


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
