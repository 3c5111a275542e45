"""RAM, swap, zram and /dev/shm."""

from collections.abc import Iterator
from shlex import quote

from ramherd.core.policies import Policy
from ramherd.core.units import MIB, count, format_size
from ramherd.decide.budget import budget_bytes
from ramherd.decide.governor.classes import prior_of
from ramherd.doctor.facts import MemoryFacts, Swap
from ramherd.doctor.findings import Finding, SetMode, Severity
from ramherd.show.zram_command import render_zram_command

# The budget leaves 0.2 free: below this, less than a tenth of the memory is left for new agents.
LOW_SHARE = 0.3
SWAP_FULL_SHARE = 0.75
SHM_USED_SHARE = 0.1
# The kernel's default is half of the RAM.
SHM_SIZE_SHARE = 0.6
# Container engines give 64 MiB; browsers that share pages through it crash.
SHM_LEAST_BYTES = 256 * MIB
PRIVATE = 0o600


def check_memory(memory: MemoryFacts) -> Iterator[Finding]:
    yield check_ram(memory)
    yield check_swap(memory)
    yield from (check_swap_file(swap) for swap in memory.swaps if swap.mode is not None)
    yield check_zram(memory)
    yield check_shm(memory)
    yield check_kills(memory)


def check_ram(memory: MemoryFacts) -> Finding:
    machine = memory.machine
    base, budget = prior_of("claude").base_bytes, budget_bytes(machine, 0, Policy())
    room = budget // base
    numbers = {
        "total_bytes": machine.total_bytes, "available_bytes": machine.available_bytes,
        "budget_bytes": budget, "agents": room,
    }  # fmt: skip
    what = (
        f"{format_size(machine.available_bytes)} of {format_size(machine.total_bytes)} available; "
        f"a budget of {format_size(budget)}, room for {room} agents of {format_size(base)}"
    )
    command = "ps -eo pid,rss,comm --sort=-rss | head"
    if room < 1:
        why = "not one agent fits beside what runs already; `ramherd run` would wait"
        return Finding("ram", Severity.PROBLEM, what, why, command, numbers=numbers)
    if machine.available_bytes < LOW_SHARE * machine.total_bytes:
        why = "little is left to give; what runs already and grows takes it from new agents"
        return Finding("ram", Severity.WARNING, what, why, command, numbers=numbers)
    return Finding("ram", Severity.OK, what, numbers=numbers)


def check_swap(memory: MemoryFacts) -> Finding:
    size = sum(swap.size_bytes for swap in memory.swaps)
    used = sum(swap.used_bytes for swap in memory.swaps)
    numbers = {"size_bytes": size, "used_bytes": used}
    if not size:
        return Finding(
            "swap", Severity.HINT, "no swap",
            "with swap, idle memory of agents in cgroup2 pens moves there before a run is stopped "
            "for another; without it, pressure (PSI) says nothing before the kernel kills",
            render_zram_command(memory.machine.total_bytes), numbers=numbers,
        )  # fmt: skip
    what = f"{format_size(used)} of {format_size(size)} swap in use"
    if used > SWAP_FULL_SHARE * size:
        why = (
            "agents wait for the disk, and the kernel kills next; end what is not needed. Not "
            f"`swapoff -a`: that needs {format_size(used)} of RAM at once"
        )
        command = "grep VmSwap /proc/[0-9]*/status | sort -k2 -n | tail"
        return Finding("swap", Severity.WARNING, what, why, command, numbers=numbers)
    return Finding("swap", Severity.OK, what, numbers=numbers)


def check_swap_file(swap: Swap) -> Finding:
    mode = swap.mode or 0
    what = f"swap file {swap.path} has mode {mode:04o}"
    if mode & ~PRIVATE:
        why = "others can read what agents had in memory: keys, prompts, files"
        fix = SetMode(swap.path, PRIVATE, mode)
        command = f"sudo chmod 600 {quote(swap.path)}"
        return Finding("swap-file", Severity.WARNING, what, why, command, fix)
    return Finding("swap-file", Severity.OK, what)


def check_zram(memory: MemoryFacts) -> Finding:
    in_use = any(swap.is_zram for swap in memory.swaps)
    if in_use and memory.zram_held_bytes:
        ratio = memory.zram_stored_bytes / memory.zram_held_bytes
        what = f"zram: {format_size(memory.zram_stored_bytes)} stored at a ratio of {ratio:.1f}"
        return Finding("zram", Severity.OK, what, numbers={"ratio": round(ratio, 2)})
    if in_use or not memory.swaps:
        return Finding("zram", Severity.OK, "zram: nothing stored" if in_use else "no zram")
    return Finding(
        "zram", Severity.HINT, "swap is on disk only",
        "374 MB of an idle agent take 144 MB in zram, and are back in 0.7 s instead of 2.5 s",
        render_zram_command(memory.machine.total_bytes),
    )  # fmt: skip


def check_shm(memory: MemoryFacts) -> Finding:
    size, used, total = memory.shm_size_bytes, memory.shm_used_bytes, memory.machine.total_bytes
    if size is None:
        return Finding("shm", Severity.OK, "no /dev/shm of its own")
    what = f"/dev/shm holds {format_size(used)} and may hold {format_size(size)}"
    numbers = {"size_bytes": size, "used_bytes": used}
    if used > SHM_USED_SHARE * total:
        why = "these files are RAM: they stay when their process has ended, and in no pen"
        command = "ls -lS /dev/shm | head"
        return Finding("shm", Severity.WARNING, what, why, command, numbers=numbers)
    if size < SHM_LEAST_BYTES:
        why = "pages of a browser (browser MCP servers) crash when it is full"
        command = "sudo mount -o remount,size=1G /dev/shm   # a container: --shm-size=1g"
        return Finding("shm", Severity.WARNING, what, why, command, numbers=numbers)
    if size > SHM_SIZE_SHARE * total:
        why = "a larger /dev/shm adds no memory; its files can take the RAM that agents need"
        command = "sudo mount -o remount,size=50% /dev/shm"
        return Finding("shm", Severity.HINT, what, why, command, numbers=numbers)
    return Finding("shm", Severity.OK, what, numbers=numbers)


def check_kills(memory: MemoryFacts) -> Finding:
    kills = memory.oom_kills
    if not kills:
        return Finding("oom-kills", Severity.OK, "no kernel OOM kill since boot")
    return Finding(
        "oom-kills", Severity.HINT, f"{count(kills, 'kernel OOM kill')} since boot",
        "kills at cgroup limits are included; a killed agent has exit status 137",
        "sudo dmesg -T | grep -i -E 'out of memory|oom-kill' | tail", numbers={"kills": kills},
    )  # fmt: skip
