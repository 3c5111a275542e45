"""Virtual machines, WSL, containers, and hosts that take memory back."""

from collections.abc import Iterator

from ramherd.core.model import Machine
from ramherd.core.units import GIB, format_size
from ramherd.doctor.facts import Virtual
from ramherd.doctor.findings import Finding, Severity

# A single agent that runs a build reaches a limit below this.
SMALL_BYTES = GIB
TAKEN_SHARE = 0.05
# Run on the host of a container; or for the service that has the limit.
RAISE_LIMIT = {
    "docker": "docker update --memory 4g --memory-swap 4g NAME",
    "podman": "podman update --memory 4g --memory-swap 4g NAME",
    "kubernetes": "kubectl set resources deployment NAME --limits=memory=4Gi",
    "lxc": "lxc config set NAME limits.memory 4GiB",
}
RAISE_SERVICE = "systemctl --user set-property NAME MemoryMax=4G"


def check_virtual(virtual: Virtual, machine: Machine) -> Iterator[Finding]:
    yield Finding("machine", Severity.OK, describe(virtual))
    yield check_wsl(virtual, machine)
    yield check_container(virtual, machine)
    yield check_balloon(virtual, machine)


def describe(virtual: Virtual) -> str:
    if virtual.is_wsl:
        return "a virtual machine (WSL)"
    return f"a virtual machine ({virtual.machine})" if virtual.machine else "no known hypervisor"


def check_wsl(virtual: Virtual, machine: Machine) -> Finding:
    if not virtual.is_wsl:
        return Finding("wsl", Severity.OK, "not WSL")
    what = f"WSL with {format_size(machine.total_bytes)}"
    if not virtual.has_systemd:
        return Finding(
            "wsl", Severity.WARNING, f"{what}, without systemd",
            "an ordinary user gets no cgroup of their own: limits are only polled",
            r"printf '[boot]\nsystemd=true\n' | sudo tee -a /etc/wsl.conf   # then: wsl --shutdown",
        )  # fmt: skip
    return Finding(
        "wsl", Severity.HINT, what,
        "by default WSL takes half of the RAM of Windows, and returns little of it",
        r"notepad %UserProfile%\.wslconfig   # [wsl2] memory=24GB",
    )  # fmt: skip


def check_container(virtual: Virtual, machine: Machine) -> Finding:
    """A limit may also be set on a service or a session."""
    limit = min((limit.limit_bytes for limit in machine.limits), default=None)
    where = f"in a container ({virtual.container})" if virtual.container else "no container"
    if limit is None or limit >= machine.total_bytes:
        if not virtual.container:
            return Finding("limit", Severity.OK, "no container and no limit around us")
        return Finding(
            "limit", Severity.HINT, f"{where} without a memory limit",
            "the budget comes from the RAM of the whole host, which others use too",
            f"ramherd run --budget {half_gib(machine)}GiB jobs.toml",
        )  # fmt: skip
    what = f"{where}, limited to {format_size(limit)} of {format_size(machine.total_bytes)}"
    numbers = {"limit_bytes": limit, "total_bytes": machine.total_bytes}
    if limit < SMALL_BYTES:
        why = "the kernel kills at the limit: a claude needs 400 MB, and its builds more"
        command = RAISE_LIMIT.get(virtual.container, RAISE_SERVICE)
        return Finding("limit", Severity.WARNING, what, why, command, numbers=numbers)
    return Finding("limit", Severity.OK, f"{what}: the budget comes from it", numbers=numbers)


def half_gib(machine: Machine) -> int:
    return max(machine.most_bytes // 2 // GIB, 1)


def check_balloon(virtual: Virtual, machine: Machine) -> Finding:
    if not virtual.balloon_driver:
        return Finding("balloon", Severity.OK, "no memory balloon")
    taken, name = virtual.balloon_bytes, virtual.balloon_driver
    if virtual.machine:
        name = f"{virtual.machine}, {name}"
    if virtual.asked_bytes > TAKEN_SHARE * machine.total_bytes:
        return Finding(
            "balloon", Severity.WARNING,
            f"the host asks for {format_size(virtual.asked_bytes)} of "
            f"{format_size(machine.total_bytes)} back ({name})",
            "the budget shrinks as it is given up, and runs are queued again",
            f"ramherd run --budget {half_gib(machine)}GiB jobs.toml",
            numbers={"asked_bytes": virtual.asked_bytes},
        )  # fmt: skip
    if taken > TAKEN_SHARE * machine.total_bytes:
        return Finding(
            "balloon", Severity.WARNING, f"the host has taken {format_size(taken)} back ({name})",
            "it may take more while agents run; the budget shrinks, and runs are queued again",
            f"ramherd run --budget {half_gib(machine)}GiB jobs.toml",
            numbers={"taken_bytes": taken},
        )  # fmt: skip
    what = f"{name}: the host can take memory back, and has taken {format_size(taken)}"
    return Finding("balloon", Severity.OK, what, numbers={"taken_bytes": taken})
