"""Which run is frozen at its grant. `act/grant_enforcer.py` carries it out."""

from ramherd.core.memory import CacheFull, Hold, RunGrant
from ramherd.core.model import PenReading, Reason, Why
from ramherd.core.policies import GrantPolicy


def choose_hold(
    reading: PenReading, grant: RunGrant, limit_bytes: int | None, policy: GrantPolicy
) -> Hold | CacheFull | None:
    """What follows for a run from its last reading. It is held at its mark by memory of its own,
    never by page cache. None: it goes on. A held run goes on when this is no `Hold` any more.
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
    """It may have all of its `memory_limit`: from there on it is the kernel that acts."""
    return limit_bytes is not None and grant.mark_bytes >= limit_bytes


def explain_hold(hold: Reason, lease_bytes: int, granted_bytes: int) -> Reason:
    """Why a run is still held: with what is free for all of them."""
    return Reason(hold.why, **hold.numbers, free_bytes=max(lease_bytes - granted_bytes, 0))
