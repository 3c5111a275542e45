"""WSL, containers, and hosts that take memory back."""

from ramherd.doctor.facts import Virtual
from ramherd.doctor.read.host import Host
from ramherd.system.procfs import (
    PAGE,
    read_cgroup,
    read_variable,
    read_version,
    read_vmstat,
)

MARKS = {".dockerenv": "docker", "run/.containerenv": "podman"}
# Visible in pid 1's cgroups: v1, and v2 without a cgroup namespace.
IN_CGROUP = {"kubepods": "kubernetes", "docker": "docker", "lxc": "lxc", "libpod": "podman"}
DRIVERS = {
    "sys/bus/virtio/drivers/virtio_balloon": "virtio_balloon",
    "sys/bus/vmbus/drivers/hv_balloon": "hv_balloon",
    "sys/module/vmw_balloon": "vmw_balloon",
    "sys/module/xen_balloon": "xen_balloon",
}


def read_virtual(host: Host) -> Virtual:
    driver, taken = read_balloon(host)
    return Virtual(
        is_wsl="microsoft" in read_version(host.proc).lower(),
        container=read_container(host),
        has_systemd=(host.root / "run/systemd/system").is_dir(),
        balloon_driver=driver,
        balloon_bytes=taken,
    )


def read_container(host: Host) -> str:
    for mark, name in MARKS.items():
        if (host.root / mark).exists():
            return name
    cgroups = read_cgroup(1, host.proc)
    for mark, name in IN_CGROUP.items():
        if mark in cgroups:
            return name
    return read_variable(1, "container", host.proc) or ""


def read_balloon(host: Host) -> tuple[str, int]:
    """A device must be bound to the driver, which may be built into the kernel and unused."""
    for path, name in DRIVERS.items():
        driver = host.root / path
        if not driver.is_dir():
            continue
        devices = [entry for entry in driver.iterdir() if entry.is_symlink()]
        if path.startswith("sys/module/") or any(entry.name != "module" for entry in devices):
            return name, read_taken(host)
    return "", 0


def read_taken(host: Host) -> int:
    """The memory that the host holds now; before kernel 6.16 only totals of moved pages."""
    counts = read_vmstat(host.proc)
    moved = counts.get("balloon_inflate", 0) - counts.get("balloon_deflate", 0)
    return max(counts.get("nr_balloon_pages", moved), 0) * PAGE
