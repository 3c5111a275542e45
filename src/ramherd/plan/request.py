"""The question of `ramherd plan`, read from its options: nonsense gets one clear line."""

import re
from typing import NamedTuple

from ramherd.core.errors import UsageError
from ramherd.core.policies import Policy
from ramherd.core.units import GIB, MIB, TIB, format_size, parse_duration, parse_size, shown
from ramherd.decide.budget import budget_of

MOST_AGENTS = 100_000
MOST_SERVERS = 200
LEAST_RAM_BYTES, MOST_RAM_BYTES = 256 * MIB, 64 * TIB
LEAST_AGENT_BYTES = 16 * MIB
# A machine that is not this one: what its system and other programs take.
LEAST_RESERVE_BYTES = 2 * GIB
RESERVE_SHARE = 0.125
HOSTS = re.compile(r"([0-9]{1,4})x(.+)")
MOST_HOSTS = 1000
# A gigabyte a second is the fastest leak that was ever reported, ten times over.
MOST_LEAK_BYTES_PER_S = 1 * GIB


class PlanHost(NamedTuple):
    """One machine. `is_here`: its reserve is what other programs take now."""

    ram_bytes: int
    reserve_bytes: int
    budget_bytes: int
    is_here: bool = False
    cores: int | None = None

    @property
    def kill_bytes(self) -> int:
        """Above this the kernel kills, if nothing limits the agents."""
        return self.ram_bytes - self.reserve_bytes


class Question(NamedTuple):
    agent: str
    # None: as many as the memory holds.
    agents: int | None
    hosts: tuple[PlanHost, ...]
    mcp: int = 0
    shares_mcp: bool = False
    pages: int = 0
    leak_bytes_per_s: float = 0.0
    memory_bytes: int | None = None
    max_parallel: int | None = None


def check_number(name: str, value: int | None, least: int, most: int, example: int) -> None:
    if value is not None and not least <= value <= most:
        what = f"below {least}" if value < least else f"above {most}"
        raise UsageError(f"--{name} {value} is {what}", hint=f"ramherd plan --{name} {example}")


def parse_leak(text: str | None) -> float:
    """`2GiB/h`, `50MB/min`: bytes a second."""
    if text is None:
        return 0.0
    hint = "write it like --leak 2GiB/h"
    if text.startswith("-"):
        raise UsageError(f"--leak {text} is negative: memory that grows is above zero", hint=hint)
    size, slash, unit = text.partition("/")
    if not slash:
        raise UsageError(f"--leak {shown(text)} has no time", hint=hint)
    try:
        leak = parse_size(size) / parse_duration(f"1{unit.strip()}")
    except UsageError as error:
        raise UsageError(f"--leak: {error}", hint=hint) from None
    if leak > MOST_LEAK_BYTES_PER_S:
        raise UsageError(f"--leak {text} is more than 1 GiB a second", hint=hint)
    return leak


def parse_hosts(text: str, reserve_bytes: int | None, cores: int | None) -> tuple[PlanHost, ...]:
    """`4x16GiB`, or several of these with commas."""
    hosts: list[PlanHost] = []
    for part in text.split(","):
        match = HOSTS.fullmatch(part.strip())
        number, size = (int(match[1]), match[2]) if match else (1, part.strip())
        if number < 1:
            raise UsageError(f"--hosts {shown(part)} has no host", hint="write it like 4x16GiB")
        host = make_host(parse_option("hosts", size), reserve_bytes, cores)
        hosts += [host] * number
    if len(hosts) > MOST_HOSTS:
        raise UsageError(f"--hosts {text} are more than {MOST_HOSTS} hosts", hint="--hosts 4x16GiB")
    return tuple(hosts)


def parse_option(name: str, text: str) -> int:
    try:
        return parse_size(text)
    except UsageError as error:
        raise UsageError(f"--{name}: {error}", hint=error.hint) from None


def make_host(ram_bytes: int, reserve_bytes: int | None, cores: int | None) -> PlanHost:
    """A machine that is not this one."""
    if not LEAST_RAM_BYTES <= ram_bytes <= MOST_RAM_BYTES:
        what = "less than 256 MiB, too small" if ram_bytes < LEAST_RAM_BYTES else "above 64 TiB"
        raise UsageError(
            f"a host of {format_size(ram_bytes)} is {what} for an agent",
            hint="ramherd plan --agents 50 --ram 16GiB",
        )
    reserve = reserve_bytes
    if reserve is None:
        reserve = max(LEAST_RESERVE_BYTES, int(RESERVE_SHARE * ram_bytes))
    budget = budget_of(ram_bytes, reserve, 0, Policy().budget_share)
    if budget <= 0:
        raise UsageError(
            f"a host of {format_size(ram_bytes)} has no room for agents beside"
            f" {format_size(reserve)} for its system",
            hint=f"if its system takes less: --reserve {max(ram_bytes // 4 // MIB, 1)}MiB",
        )
    return PlanHost(ram_bytes, reserve, budget, cores=cores)


def check_agent_size(size_bytes: int | None, host: PlanHost) -> None:
    if size_bytes is None:
        return
    if size_bytes < LEAST_AGENT_BYTES:
        raise UsageError(
            f"--memory {format_size(size_bytes)} is below 16 MiB, less than any agent takes",
            hint="--memory 300MiB",
        )
    if size_bytes > host.budget_bytes:
        raise UsageError(
            f"an agent of {format_size(size_bytes)} does not fit: {format_size(host.ram_bytes)} of"
            f" RAM have {format_size(host.budget_bytes)} for agents",
            hint="--memory is the mean of one agent, as in --memory 300MiB",
        )
