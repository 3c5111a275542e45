"""Limits that stop agents before memory does: /proc/sys and ulimit."""

from collections.abc import Iterator

from ramherd.core.units import format_size
from ramherd.doctor.facts import Kernel, Limits, MemoryFacts
from ramherd.doctor.findings import Finding, SetKernel, Severity

GB = 10**9
# A claude maps this much address space, and touches 0.2 GB of it.
VIRTUAL_BYTES = 73 * GB
LEAST_WATCHES = 65_536
LEAST_INSTANCES = 256
BETTER = {"fs.inotify.max_user_watches": 524_288, "fs.inotify.max_user_instances": 1024}
FEW_FILES, MANY_FILES = 1024, 65_536
# One pen may hold 4096 processes; threads count here too.
FEW_PROCESSES, SOME_PROCESSES = 1024, 4096
FILES_FULL_SHARE = 0.8


def check_kernel(kernel: Kernel, memory: MemoryFacts) -> Iterator[Finding]:
    yield check_overcommit(kernel, memory)
    yield check_allocating_task(kernel)
    yield check_inotify(kernel, "fs.inotify.max_user_watches", LEAST_WATCHES)
    yield check_inotify(kernel, "fs.inotify.max_user_instances", LEAST_INSTANCES)
    yield check_file_table(kernel)


def set_kernel(kernel: Kernel, name: str, value: int, kept_in: str = "") -> SetKernel | None:
    """Only root may set it, and a fix that does not work is not offered."""
    if not kernel.is_root:
        return None
    return SetKernel(kernel.paths[name], name, value, kernel.values[name], kept_in)


def check_overcommit(kernel: Kernel, memory: MemoryFacts) -> Finding:
    name = "vm.overcommit_memory"
    mode = kernel.values.get(name, 0)
    if mode != 2:
        return Finding("overcommit", Severity.OK, f"{name} is {mode}", numbers={"mode": mode})
    left = max(memory.commit_limit_bytes - memory.committed_bytes, 0)
    return Finding(
        "overcommit", Severity.PROBLEM,
        f"{name} is 2: {format_size(left)} of {format_size(memory.commit_limit_bytes)} can still "
        "be promised",
        f"each claude maps {VIRTUAL_BYTES // GB} GB of addresses and uses little of it: starts "
        "and forks fail while memory is free",
        f"sudo sysctl -w {name}=0", set_kernel(kernel, name, 0),
        {"mode": mode, "left_bytes": left},
    )  # fmt: skip


def check_allocating_task(kernel: Kernel) -> Finding:
    name = "vm.oom_kill_allocating_task"
    value = kernel.values.get(name, 0)
    if not value:
        return Finding("oom-task", Severity.OK, f"{name} is 0")
    size = "; it is a switch and no size" if value > 1 else ""
    return Finding(
        "oom-task", Severity.WARNING, f"{name} is {value}{size}",
        "the process that asks for the last page is killed, even if another one leaks",
        f"sudo sysctl -w {name}=0", set_kernel(kernel, name, 0), {"value": value},
    )  # fmt: skip


def check_inotify(kernel: Kernel, name: str, least: int) -> Finding:
    check, value = name.rsplit(".", 1)[1].replace("max_user_", "inotify-"), kernel.values.get(name)
    if value is None:
        return Finding(check, Severity.HINT, f"{name} cannot be read", "it may not be there")
    if value >= least:
        return Finding(check, Severity.OK, f"{name} is {value}", numbers={"value": value})
    kept_in = kernel.kept_in
    return Finding(
        check, Severity.HINT, f"{name} is {value}",
        "each agent, editor and test runner that watches files uses some of them; when none is "
        "left, watching fails with ENOSPC or EMFILE",
        f"echo {name}={BETTER[name]} | sudo tee -a {kept_in} && sudo sysctl -p {kept_in}",
        set_kernel(kernel, name, BETTER[name], kept_in),
        {"value": value, "least": least},
    )  # fmt: skip


def check_file_table(kernel: Kernel) -> Finding:
    most, used = kernel.values.get("fs.file-max", 0), kernel.open_files
    what, numbers = f"{used} of {most} files open on the machine", {"open": used, "most": most}
    if most and used > FILES_FULL_SHARE * most:
        why = "at the end of it every open fails with ENFILE, in every program"
        command = f"sudo sysctl -w fs.file-max={most * 2}"
        return Finding("file-table", Severity.WARNING, what, why, command, numbers=numbers)
    return Finding("file-table", Severity.OK, what, numbers=numbers)


def check_limits(limits: Limits) -> Iterator[Finding]:
    yield check_open_files(*limits.open_files)
    yield check_processes(limits.processes[0])
    yield check_addresses("ulimit -v", limits.address_space_bytes)
    yield check_addresses("ulimit -d", limits.data_bytes)


def check_open_files(soft: int | None, hard: int | None) -> Finding:
    if soft is None or soft > FEW_FILES:
        return Finding("open-files", Severity.OK, f"ulimit -n is {soft or 'unlimited'}")
    level = Severity.WARNING if soft < FEW_FILES else Severity.HINT
    most = MANY_FILES if hard is None else min(hard, MANY_FILES)
    raised = f"ulimit -n {most}" if most > soft else f"sudo prlimit --pid $$ --nofile={MANY_FILES}"
    return Finding(
        "open-files", level, f"ulimit -n is {soft}",
        "agents that watch files hold thousands of descriptors: EMFILE; ramherd needs six per run",
        raised, numbers={"soft": soft},
    )  # fmt: skip


def check_processes(soft: int | None) -> Finding:
    if soft is None or soft >= SOME_PROCESSES:
        return Finding("processes", Severity.OK, f"ulimit -u is {soft or 'unlimited'}")
    level = Severity.WARNING if soft < FEW_PROCESSES else Severity.HINT
    return Finding(
        "processes", level, f"ulimit -u is {soft}",
        "threads count, of all your programs together: an agent has 10 to 30, and forks fail",
        f"sudo prlimit --pid $$ --nproc={SOME_PROCESSES * 4}", numbers={"soft": soft},
    )  # fmt: skip


def check_addresses(name: str, limit: int | None) -> Finding:
    check = "address-space" if name.endswith("v") else "data-segment"
    if limit is None:
        return Finding(check, Severity.OK, f"{name} is unlimited")
    level = Severity.PROBLEM if limit < VIRTUAL_BYTES else Severity.HINT
    return Finding(
        check, level, f"{name} is {format_size(limit)}",
        f"it counts addresses, not memory: a claude maps {VIRTUAL_BYTES // GB} GB and does not "
        "start below that; a pen limits what is really used",
        f"{name} unlimited", numbers={"limit_bytes": limit},
    )  # fmt: skip
