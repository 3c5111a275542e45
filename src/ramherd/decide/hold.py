"""Which run is frozen at its grant. `act/grant_enforcer.py` freezes it."""

from ramherd.core.memory import CacheFull, Hold, RunGrant
from ramherd.core.model import PenReading, Reason, Why
from ramherd.core.policies import GrantPolicy


def choose_hold(
    reading: PenReading, grant: RunGrant, limit_bytes: int | None, policy: GrantPolicy
) -> Hold | CacheFull | None:
    """The decision after a run's last reading. A run is held when its own memory reaches the mark,
    never because of page cache. None: the run continues. A held run continues when the result is no
    longer a `Hold`.
    """
    if not grant.grant_bytes or is_at_limit(grant, limit_bytes):
        return None
    full_bytes = grant.mark_bytes - policy.near_bytes
    used = reading.used_bytes
    if used >= full_bytes:
        return Hold(Reason(Why.AT_GRANT, used_bytes=used, grant_bytes=grant.grant_bytes))
    if used + reading.cache_bytes >= full_bytes:
        return CacheFull(Reason(Why.CACHE, used_bytes=used, cache_bytes=reading.cache_bytes))
    return None


def is_at_limit(grant: RunGrant, limit_bytes: int | None) -> bool:
    """The run may use all of its `memory_limit`: the kernel enforces that limit."""
    return limit_bytes is not None and grant.mark_bytes >= limit_bytes


def explain_hold(hold: Reason, lease_bytes: int, granted_bytes: int) -> Reason:
    """Why a run is still held, with the memory that is free for all runs."""
    return Reason(hold.why, **hold.numbers, free_bytes=max(lease_bytes - granted_bytes, 0))
