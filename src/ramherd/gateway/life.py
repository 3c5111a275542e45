"""When a server's process is stopped or started again. Pure: readings in, a reason out.

A process that one agent has for itself keeps the agent's state, so only its own limit ends it.
"""

from typing import NamedTuple

from ramherd.core.reasons import Reason, Why
from ramherd.core.units import MIB, format_duration, format_size
from ramherd.decide.governor.leaks import IdleSamples, find_leak

# The servers measured use 60 to 120 MB.
WARN_BYTES = 200 * MIB
# Of its limit; at the limit itself the kernel would end it during a call.
NEAR_LIMIT = 0.85
# Nobody waits for a process that was not used for so long.
QUIET_S = 10.0
# A leak counts if the limit would be reached within this time.
LEAK_LEFT_S = 3600.0


class ServerReading(NamedTuple):
    """`idle_s` is the time since the last call; None: a call, a task or a subscription is open.
    `stop_after_s` None: it is not stopped for being idle.
    """

    idle_s: float | None
    used_bytes: int
    limit_bytes: int
    clients: int
    is_private: bool
    stop_after_s: float | None
    samples: IdleSamples = IdleSamples()


def choose_stop(reading: ServerReading) -> str | None:
    """Why the process is stopped now; the next call starts it again."""
    if reading.idle_s is None:
        return None
    if reading.is_private:
        return choose_private_stop(reading)
    if reading.stop_after_s is not None and reading.idle_s >= reading.stop_after_s:
        return f"not used for {format_duration(reading.idle_s)}"
    return choose_restart(reading) if reading.idle_s >= QUIET_S else None


def choose_restart(reading: ServerReading) -> str | None:
    used, limit = format_size(reading.used_bytes), format_size(reading.limit_bytes)
    if reading.used_bytes >= NEAR_LIMIT * reading.limit_bytes:
        return f"uses {used} of its limit of {limit}"
    leak = find_leak(reading.samples.points)
    if leak is not None and leak.left_s(reading.limit_bytes) < LEAK_LEFT_S:
        left = format_duration(leak.left_s(reading.limit_bytes))
        return f"leaks: {used}, and its limit of {limit} in {left}"
    return None


def choose_private_stop(reading: ServerReading) -> str | None:
    if reading.clients == 0:
        return "its agent has ended"
    if reading.stop_after_s is not None and reading.idle_s is not None:
        is_idle = reading.idle_s >= reading.stop_after_s
        return f"not used for {format_duration(reading.idle_s)}" if is_idle else None
    return None


def explain_large(server: str, used_bytes: int, limit_bytes: int) -> Reason | None:
    """Why a process is reported. The caller reports each process once, so there is one mark."""
    if used_bytes <= WARN_BYTES:
        return None
    return Reason(
        Why.LARGE_SERVER, server=server, used_bytes=used_bytes, warn_bytes=WARN_BYTES,
        limit_bytes=limit_bytes,
    )  # fmt: skip
