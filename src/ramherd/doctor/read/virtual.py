"""Virtual machines, WSL, containers, and hosts that take memory back."""

from ramherd.core.units import KIB
from ramherd.doctor.facts import Virtual
from ramherd.doctor.read.host import Host
from ramherd.system.procfs import (
    PAGE,
    is_in_first_namespaces,
    read_boot_options,
    read_cgroup,
    read_variable,
    read_version,
    read_vmstat,
)

# The first mark that is found names the engine. CRI-O makes the file of podman in its pods.
MARKS = {
    "run/secrets/kubernetes.io": "kubernetes",
    "var/run/secrets/kubernetes.io": "kubernetes",
    "run/.containerenv": "podman",
}
DOCKER_MARK = ".dockerenv"
# Visible in pid 1's cgroups: v1, and v2 without a cgroup namespace.
IN_CGROUP = {"kubepods": "kubernetes", "libpod": "podman", "docker": "docker", "lxc": "lxc"}
DRIVERS = {
    "sys/bus/virtio/drivers/virtio_balloon": "virtio_balloon",
    "sys/bus/vmbus/drivers/hv_balloon": "hv_balloon",
    "sys/module/vmw_balloon": "vmw_balloon",
}
XEN_MEMORY = "sys/devices/system/xen_memory/xen_memory0"
QUBES_MARK = "usr/share/qubes/marker-vm"
DMI = "sys/class/dmi/id"
# By the vendor or product that the firmware names.
VENDORS = {
    "QEMU": "QEMU", "KVM": "KVM", "Amazon EC2": "Amazon EC2", "Google": "Google Compute Engine",
    "VMware": "VMware", "VirtualBox": "VirtualBox", "Xen": "Xen", "Virtual Machine": "Hyper-V",
}  # fmt: skip
# Firecracker names itself in its ACPI tables, which only root can read; it has no DMI, and its
# guests are booted with these words, as its manual asks for.
ACPI_TABLE, ACPI_NAME = "sys/firmware/acpi/tables/DSDT", b"FIRECK"
FIRECRACKER_WORDS = {"reboot=k", "panic=1"}


def read_virtual(host: Host) -> Virtual:
    driver, taken, asked = read_balloon(host)
    return Virtual(
        is_wsl="microsoft" in read_version(host.proc).lower(),
        machine=read_kind(host),
        container=read_container(host),
        has_systemd=(host.root / "run/systemd/system").is_dir(),
        balloon_driver=driver,
        balloon_bytes=taken,
        asked_bytes=asked,
    )


def read_kind(host: Host) -> str:
    """The kind of virtual machine; empty for hardware, and where nothing names it."""
    if (host.root / QUBES_MARK).exists():
        return "Qubes OS"
    if host.text("sys/hypervisor/type").strip() == "xen" or (host.root / XEN_MEMORY).is_dir():
        return "Xen"
    if not (host.root / DMI).is_dir():
        return "Firecracker" if is_firecracker(host) else ""
    names = " ".join(host.text(f"{DMI}/{name}") for name in ("sys_vendor", "product_name"))
    return next((name for mark, name in VENDORS.items() if mark in names), "")


def is_firecracker(host: Host) -> bool:
    try:
        with (host.root / ACPI_TABLE).open("rb") as file:
            return ACPI_NAME in file.read(16)
    except OSError:
        return set(read_boot_options(host.proc).split()) >= FIRECRACKER_WORDS


def read_container(host: Host) -> str:
    """A disk that was made from an image of docker has its mark too: the namespaces decide."""
    if is_in_first_namespaces(host.proc):
        return ""
    for mark, name in MARKS.items():
        if (host.root / mark).exists():
            return name
    if told := read_variable(1, "container", host.proc):
        return told
    if (host.root / DOCKER_MARK).exists():
        return "docker"
    cgroups = read_cgroup(1, host.proc)
    return next((name for mark, name in IN_CGROUP.items() if mark in cgroups), "")


def read_balloon(host: Host) -> tuple[str, int, int]:
    """The driver, the bytes that the host has taken, and those that it asks for now. A device must
    be bound to the driver, which may be built into the kernel and unused.
    """
    if (host.root / XEN_MEMORY).is_dir():
        return "xen_balloon", 0, read_asked_by_xen(host)
    for path, name in DRIVERS.items():
        driver = host.root / path
        if not driver.is_dir():
            continue
        devices = [entry for entry in driver.iterdir() if entry.is_symlink()]
        if path.startswith("sys/module/") or any(entry.name != "module" for entry in devices):
            return name, read_taken(host), 0
    return "", 0, 0


def read_asked_by_xen(host: Host) -> int:
    """What was taken is no part of MemTotal; what is above the target has to be given up."""
    target = host.number(f"{XEN_MEMORY}/target_kb")
    current = host.number(f"{XEN_MEMORY}/info/current_kb")
    return 0 if target is None or current is None else max(current - target, 0) * KIB


def read_taken(host: Host) -> int:
    """The memory that the host holds now; before kernel 6.16 only totals of moved pages."""
    counts = read_vmstat(host.proc)
    moved = counts.get("balloon_inflate", 0) - counts.get("balloon_deflate", 0)
    return max(counts.get("nr_balloon_pages", moved), 0) * PAGE
