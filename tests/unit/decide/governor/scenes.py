"""Scenes made of a few numbers, and the effects of actions on them."""

from collections.abc import Sequence
from dataclasses import replace

from ramherd.core.memory import MB, Admit, Candidate, Grant, GrantAction, Penned, Scene, Stop


def pen(name: str, used_mb: float, grant_mb: float, **more: object) -> Penned:
    """The start time is the number in the name, so that `r1` is older than `r2`."""
    number = int(name[1:])
    run = Penned(
        run=name,
        job=f"job-{name}",
        seq=number,
        first_s=float(number),
        started_s=float(number),
        used_bytes=int(used_mb * MB),
        grant_bytes=int(grant_mb * MB),
    )
    return replace(run, **more)  # type: ignore[arg-type]


def held(name: str, grant_mb: float, since_s: float, **more: object) -> Penned:
    return pen(name, grant_mb, grant_mb, held_since_s=since_s, **more)


def waiting_job(seq: int, **more: object) -> Candidate:
    return replace(Candidate(f"next-{seq}", seq, queued_s=0.0), **more)  # type: ignore[arg-type]


def scene(
    lease_mb: float, *runs: Penned, at_s: float = 100.0, queue: Sequence[Candidate] = ()
) -> Scene:
    return Scene(at_s, int(lease_mb * MB), runs, queue, largest_bytes=int(lease_mb * MB))


def carried_out(before: Scene, actions: Sequence[GrantAction]) -> list[int]:
    """The sum of grants after each action."""
    grants = {run.run: run.grant_bytes for run in before.runs}
    sums = [sum(grants.values())]
    for action in actions:
        if isinstance(action, Grant):
            grants[action.run] = action.grant_bytes
        elif isinstance(action, Admit):
            grants[f"new-{action.job}"] = action.grant_bytes
        sums.append(sum(grants.values()))
    return sums


def stops(actions: Sequence[GrantAction]) -> list[str]:
    return [action.run for action in actions if isinstance(action, Stop)]


def admitted(actions: Sequence[GrantAction]) -> list[str]:
    return [action.job for action in actions if isinstance(action, Admit)]


def grants(actions: Sequence[GrantAction]) -> dict[str, int]:
    return {action.run: action.grant_bytes for action in actions if isinstance(action, Grant)}
