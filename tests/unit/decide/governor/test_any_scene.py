"""Properties that hold for every scene."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from ramherd.core.memory import (
    MB,
    Admit,
    Bursts,
    Candidate,
    Grant,
    History,
    Level,
    Penned,
    Scene,
    Stop,
    Trim,
)
from ramherd.core.model import Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.govern import govern
from ramherd.decide.governor.room import oldest_first
from ramherd.show.reasons import render_reason
from support.reached import Reached
from unit.decide.governor.scenes import carried_out

POLICY = GrantPolicy()
AT_S = 1000.0


@st.composite
def runs(draw: st.DrawFn, number: int, *, kind: str) -> Penned:
    grant = draw(st.integers(1, 2000)) * MB
    is_held = kind != "calm" and draw(st.booleans())
    # A run may be above its grant for a moment: usage is read after the grant was set.
    used = grant if is_held else draw(st.integers(0, grant + 50 * MB))
    limit = draw(st.none() | st.integers(1, 2200))
    started = draw(st.floats(0, AT_S))
    return Penned(
        run=f"r{number}",
        job=f"j{number}",
        seq=number,
        first_s=draw(st.floats(0, started)),
        started_s=started,
        used_bytes=used,
        grant_bytes=grant,
        held_since_s=draw(st.floats(started, AT_S)) if is_held else None,
        priority=draw(st.integers(-1, 1)),
        leaving=kind == "any" and draw(st.integers(0, 9)) == 0,
        promised_bytes=draw(st.sampled_from((0, 0, 100 * MB, 600 * MB))),
        cache_bytes=draw(st.sampled_from((0, 0, MB, 300 * MB, 5000 * MB))),
        cache_full=not is_held and draw(st.booleans()),
        limit_bytes=None if limit is None else limit * MB,
        resumes=draw(st.booleans()),
        stops=draw(st.sampled_from((0, 0, 1, 2, 6))),
    )


@st.composite
def candidates(draw: st.DrawFn, seq: int, priority: int) -> Candidate:
    return Candidate(
        job=f"q{seq}",
        seq=seq,
        queued_s=draw(st.floats(0, AT_S)),
        priority=priority,
        need_bytes=draw(st.sampled_from((0, 0, 0, 300 * MB, 3000 * MB))),
        not_before_s=draw(st.sampled_from((0.0, 0.0, 0.0, 2 * AT_S))),
        limit_bytes=draw(st.sampled_from((None, 50 * MB, 5000 * MB, 5000 * MB))),
        promised_bytes=draw(st.sampled_from((0, 0, MB, 60 * MB))),
        first_s=draw(st.none() | st.floats(0, AT_S)),
        stops=draw(st.sampled_from((0, 0, 1, 6))),
    )


@st.composite
def scenes(draw: st.DrawFn, *kinds: str) -> Scene:
    """One scene in five is arbitrary. In most of these a run waits, or another rule prevents all
    starts, so no job starts. The other scenes have room, and most of them no closed gate; in half
    of them runs wait nevertheless. A named kind has no closed gate; a "tight" one has no room, or a
    debt, for runs that wait.
    """
    kind = draw(st.sampled_from(kinds or ("calm", "calm", "roomy", "roomy", "any")))
    is_open = bool(kinds) or (kind != "any" and draw(st.integers(0, 3)) > 0)
    penned = [draw(runs(number, kind=kind)) for number in range(draw(st.integers(0, 12)))]
    priorities = draw(st.lists(st.integers(-1, 1), min_size=is_open, max_size=6))
    queue = [draw(candidates(seq, one)) for seq, one in enumerate(sorted(priorities))][::-1]
    lease = draw(st.integers(0, 20_000)) * MB
    if kind != "any":
        least_mb = 500 if is_open else 0
        lease = sum(run.grant_bytes for run in penned) + draw(st.integers(least_mb, 4000)) * MB
    if kind == "tight":
        lease = max(sum(run.grant_bytes for run in penned) - draw(st.integers(0, 2000)) * MB, 0)
    ending = draw(st.sampled_from((0, 0, 1, 5)))
    free = draw(st.sampled_from((None, 1, 2, 3, 3)))
    ramp = None if free is None else len(penned) + ending + free
    return Scene(
        AT_S, lease, penned, queue,
        largest_bytes=lease + draw(st.sampled_from((0, 0, 1000 * MB))),
        memory_pressure=0.0 if kind != "any" else draw(st.sampled_from((0.0, 0.15, 0.5))),
        cpu_pressure=0.0 if is_open else draw(st.sampled_from((0.0, 0.8, 0.95))),
        failed_starts=0 if kind != "any" else draw(st.sampled_from((0, 0, 1, 3))),
        starting=draw(st.sampled_from((0, 14, 14) if is_open else (0, 0, 15, 16))),
        ending=ending,
        ending_bytes=draw(st.sampled_from((0, 0, 500 * MB))),
        ramp=ramp if is_open else draw(st.none() | st.integers(1, 15)),
    )  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> History:
    names = st.sampled_from([f"r{number}" for number in range(12)])
    marks = st.dictionaries(names, st.floats(AT_S - 20, AT_S), max_size=5)
    return History(
        idle_since_s=draw(marks),
        urgent_s=draw(marks),
        grown_s=draw(marks),
        # Mostly not within the last second, in which nothing starts.
        short_s=draw(st.none() | st.floats(AT_S - 8, AT_S)),
        bursts=draw(
            st.dictionaries(
                st.sampled_from([f"j{number}" for number in range(12)]),
                st.builds(Bursts, st.integers(1, 4), st.floats(0, AT_S)),
                max_size=3,
            )
        ),
        level=draw(st.sampled_from(Level)),
        debt_since_s=draw(st.none() | st.floats(AT_S - 20, AT_S)),
    )


@given(scenes(), histories())
def test_no_action_raises_the_grants_above_the_lease(
    reached: Reached, scene: Scene, history: History
) -> None:
    """After each action the sum is within the lease, or has not risen."""
    _, actions = govern(scene, history, POLICY)

    sums = carried_out(scene, actions)
    reached(any(after > before for before, after in pairwise(sums)), "a sum that rises")
    for before, after in pairwise(sums):
        assert after <= max(scene.lease_bytes, before)
        assert after <= before or after <= scene.lease_bytes


@given(scenes() | scenes("tight"), histories())
def test_a_grant_is_never_lowered_under_what_is_used(
    reached: Reached, scene: Scene, history: History
) -> None:
    """The kernel would refuse the limit, or kill the run."""
    _, actions = govern(scene, history, POLICY)

    by_name = {run.run: run for run in scene.runs}
    lowered = [
        action
        for action in actions
        if isinstance(action, Grant) and action.grant_bytes < by_name[action.run].grant_bytes
    ]
    reached(lowered, "a grant that is lowered")
    assert all(one.grant_bytes >= by_name[one.run].used_bytes for one in lowered)


@given(scenes() | scenes("calm"), histories())
def test_no_more_run_than_the_ramp_allows(reached: Reached, scene: Scene, history: History) -> None:
    """Ended runs that still have their pens count."""
    _, actions = govern(scene, history, POLICY)

    started = sum(isinstance(action, Admit) for action in actions)
    running = len(scene.runs) + scene.ending
    reached(started and scene.ramp is not None, "a start with a ramp")
    reached(started and scene.starting, "a start beside others")
    assert not started or scene.ramp is None or running + started <= scene.ramp
    assert not started or scene.starting + started <= POLICY.max_starting


@given(scenes() | scenes("calm"), histories())
def test_nobody_starts_or_grows_beyond_its_limit(
    reached: Reached, scene: Scene, history: History
) -> None:
    """At `memory_limit` the kernel acts: a larger grant does not help, except for the distance of
    the mark, and one byte for a run that is already there.
    """
    _, actions = govern(scene, history, POLICY)

    runs = {run.run: run for run in scene.runs}
    limits = {one.job: one.limit_bytes for one in scene.queue}
    limited = {run.run for run in scene.runs if run.limit_bytes is not None}
    reached(any(isinstance(one, Admit) and limits[one.job] for one in actions), "a limited start")
    reached(any(isinstance(one, Grant) and one.run in limited for one in actions), "limited growth")
    for action in actions:
        if isinstance(action, Admit) and (limit := limits[action.job]) is not None:
            assert action.grant_bytes <= limit
        if isinstance(action, Grant) and (limit := runs[action.run].limit_bytes) is not None:
            before = runs[action.run].grant_bytes
            assert action.grant_bytes <= max(limit + POLICY.arm_below_bytes, before + 1)


@given(scenes(), histories())
def test_page_cache_takes_nothing_from_anybody(
    reached: Reached, scene: Scene, history: History
) -> None:
    """It gets free memory or is dropped: all other decisions are the same as without it."""
    _, actions = govern(scene, history, POLICY)
    without = replace(scene, runs=[replace(run, cache_full=False) for run in scene.runs])
    _, others = govern(without, history, POLICY)

    full = {run.run for run in scene.runs if run.cache_full}
    for_cache = [action for action in actions if action.reason.why is Why.CACHE]
    reached(for_cache, "something for page cache")
    reached(for_cache and others, "page cache beside other actions")
    assert [action for action in actions if action not in for_cache] == others
    assert {action.run for action in for_cache if isinstance(action, Grant | Trim)} <= full


@given(scenes() | scenes("tight"), histories())
def test_the_oldest_run_is_never_stopped_for_another(
    reached: Reached, scene: Scene, history: History
) -> None:
    """At least one run always continues."""
    _, actions = govern(scene, history, POLICY)

    live = oldest_first(run for run in scene.runs if not run.leaving)
    stopped = [action.run for action in actions if isinstance(action, Stop)]
    if reached(len(live) > 1 and stopped, "a stop among several"):
        assert live[0].run not in stopped


@given(scenes(), histories())
def test_everybody_is_told_one_thing(reached: Reached, scene: Scene, history: History) -> None:
    """One stop for a run, one start for a job, and none for a run that is already leaving."""
    _, actions = govern(scene, history, POLICY)

    stopped = [action.run for action in actions if isinstance(action, Stop)]
    started = [action.job for action in actions if isinstance(action, Admit)]
    reached(stopped, "a stop")
    reached(started, "a start")
    assert len(set(stopped)) == len(stopped)
    assert len(set(started)) == len(started)
    assert not {run.run for run in scene.runs if run.leaving} & set(stopped)


@given(scenes() | scenes("roomy"), histories())
def test_nobody_is_let_in_while_somebody_waits(
    reached: Reached, scene: Scene, history: History
) -> None:
    """Free memory belongs to the live runs, even if there is room for the next job."""
    _, actions = govern(scene, history, POLICY)
    nobody = replace(scene, runs=[replace(run, held_since_s=None) for run in scene.runs])
    _, others = govern(nobody, history, POLICY)

    waits = any(run.held_since_s is not None and not run.leaving for run in scene.runs)
    would_start = any(isinstance(action, Admit) for action in others)
    reached(waits and would_start, "a run that waits beside a job that would start")
    assert not (waits and any(isinstance(action, Admit) for action in actions))


@given(scenes(), histories())
def test_the_first_waiter_gets_on_or_somebody_makes_room(
    reached: Reached, scene: Scene, history: History
) -> None:
    """The first waiting run gets more, or has waited less than its patience, or another run is
    leaving, or a burst is under way, or it has all the memory there is.
    """
    _, actions = govern(scene, history, POLICY)

    waiting = oldest_first(
        run for run in scene.runs if run.held_since_s is not None and not run.leaving
    )
    waited = AT_S - (waiting[0].held_since_s or 0.0) if waiting else 0.0
    if not reached(waited >= POLICY.patience_s and len(scene.runs) > 1, "a waiter out of patience"):
        return
    assert (
        waiting[0].run in [action.run for action in actions if isinstance(action, Grant)]
        or any(isinstance(action, Stop) for action in actions)
        or any(run.leaving for run in scene.runs)
        or any(AT_S - grown_s < POLICY.burst_s for grown_s in history.grown_s.values())
    )


@settings(max_examples=50)
@given(scenes(), histories())
def test_every_action_says_why(reached: Reached, scene: Scene, history: History) -> None:
    """Each reason has the numbers that its sentence needs."""
    _, actions = govern(scene, history, POLICY)

    reached(actions, "an action")
    for action in actions:
        assert render_reason(action.reason)
