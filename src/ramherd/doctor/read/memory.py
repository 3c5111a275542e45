"""RAM, swap, zram, /dev/shm and the kernel's committed memory."""

import os
from collections.abc import Callable, Iterator

from ramherd.core.units import KIB
from ramherd.doctor.facts import MemoryFacts, Swap
from ramherd.doctor.read.host import Host
from ramherd.measure.cgroups import read_trees
from ramherd.measure.machine import read_machine
from ramherd.system.procfs import (
    read_meminfo_fields,
    read_mounts,
    read_swap_areas,
    read_vmstat,
    unescape,
)


def read_memory(host: Host) -> MemoryFacts:
    fields = read_meminfo_fields(host.proc)
    counts = read_vmstat(host.proc)
    stored, held = read_zram(host)
    size, used = read_shm(host)
    return MemoryFacts(
        machine=read_machine(read_trees(host.proc), host.proc),
        swaps=tuple(read_swaps(host)),
        swapped_in_pages=counts.get("pswpin", 0),
        zram_stored_bytes=stored,
        zram_held_bytes=held,
        shm_size_bytes=size,
        shm_used_bytes=used,
        commit_limit_bytes=fields.get("CommitLimit", 0),
        committed_bytes=fields.get("Committed_AS", 0),
        oom_kills=counts.get("oom_kill", 0),
    )


def read_swaps(host: Host) -> Iterator[Swap]:
    """/proc/swaps: path, type, size and use in KiB. Spaces in a path are escaped."""
    for line in read_swap_areas(host.proc):
        path, kind, size, used, *_rest = line.split()
        path = unescape(path)
        mode = read_mode(host, path) if kind == "file" else None
        yield Swap(path, int(size) * KIB, int(used) * KIB, mode)


def read_mode(host: Host, path: str) -> int | None:
    try:
        return (host.root / path.lstrip("/")).stat().st_mode & 0o777
    except OSError:
        return None


def read_zram(host: Host) -> tuple[int, int]:
    """Bytes stored and memory held, over all devices (mm_stat: fields one and three)."""
    stored = held = 0
    for path in sorted((host.root / "sys/block").glob("zram*/mm_stat")):
        fields = path.read_text().split()
        stored, held = stored + int(fields[0]), held + int(fields[2])
    return stored, held


def read_shm(
    host: Host, statvfs: Callable[[str], os.statvfs_result] = os.statvfs
) -> tuple[int | None, int]:
    """Size and use of /dev/shm. In a made-up root this would be the disk, so only a separate mount
    is read.
    """
    if ("/dev/shm", "tmpfs") not in read_mounts(host.proc):
        return None, 0
    try:
        found = statvfs(str(host.root / "dev/shm"))
    except OSError:
        return None, 0
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    return found.f_blocks * found.f_frsize, used
