"""Growth for a run's own memory, up to its limit, and for its page cache."""

from dataclasses import replace

from ramherd.core.memory import MB, GrantAction, History, Scene, Trim
from ramherd.core.model import Why
from ramherd.core.policies import TIMES, GrantPolicy
from ramherd.decide.governor.govern import govern
from unit.decide.governor.scenes import admitted, carried_out, grants, held, pen, scene, waiting_job

POLICY = GrantPolicy()
QUANTUM, ARM = POLICY.quantum_bytes, POLICY.arm_below_bytes
# A held run gets the distance to its mark plus a quantum.
STEP = QUANTUM + ARM + POLICY.near_bytes


def decide(at: Scene, history: History | None = None) -> list[GrantAction]:
    return govern(at, history or History(), POLICY)[1]


def test_who_was_held_late_gets_what_it_went_too_far_on_top() -> None:
    """With a quantum alone it would be held again at once."""
    late = held("r1", 200, 99, used_bytes=250 * MB)

    assert grants(decide(scene(1000, late))) == {"r1": 250 * MB + STEP}


def test_growth_ends_at_the_limit_of_the_run() -> None:
    """Its mark then equals the limit: from there on the kernel acts."""
    near = held("r1", 200, 99, limit_bytes=210 * MB)
    far = held("r1", 200, 99, limit_bytes=400 * MB)

    assert grants(decide(scene(1000, near))) == {"r1": 210 * MB + ARM}
    assert grants(decide(scene(1000, far))) == {"r1": 200 * MB + STEP}


def test_the_run_that_has_grown_most_grows_first() -> None:
    """Before older ones, and also if less than a quantum is left; then nobody else grows."""
    small, large = held("r1", 300, 99), held("r2", 800, 99)
    rest = scene(1110, small, large)
    assert grants(decide(rest)) == {"r2": 810 * MB}
    assert grants(decide(scene(1100 + 1, small, large))) == {}


def test_others_grow_only_while_the_largest_burst_could_take_as_much_again() -> None:
    """With less they would both stop half grown. A quantum for each is needed besides."""
    small, large = held("r1", 300, 99), held("r2", 615, 99)
    # The large one is 400 MB above its base.
    enough = 915 * MB + 2 * STEP + 400 * MB

    def grown(lease: int) -> set[str]:
        at = replace(scene(0, small, large), lease_bytes=lease, largest_bytes=lease)
        return set(grants(decide(at)))

    assert grown(enough) == {"r1", "r2"}
    assert grown(enough - 1) == {"r2"}


def cached(used: float, grant: float, cache: int, **more: object) -> Scene:
    run = pen("r1", used, grant, cache_bytes=cache * MB, cache_full=True, **more)
    return scene(1000, run)


def test_page_cache_doubles_while_nobody_wants_the_room() -> None:
    """At least a quantum; the last quantum is left to others."""
    assert grants(decide(cached(100, 300, 200))) == {"r1": 500 * MB}
    assert grants(decide(cached(298, 300, 2))) == {"r1": 300 * MB + QUANTUM}


def test_page_cache_is_dropped_where_there_is_no_room() -> None:
    """The run is neither held nor stopped for it, and other grants do not change."""
    actions = decide(cached(100, 600, 500))

    assert [(type(action), action.reason.why) for action in actions] == [(Trim, Why.CACHE)]


def test_page_cache_ends_at_the_limit_of_the_run() -> None:
    """More would not help the run."""
    assert grants(decide(cached(100, 300, 200, limit_bytes=350 * MB))) == {"r1": 350 * MB + ARM}


def test_who_is_held_or_leaves_gets_nothing_for_its_cache() -> None:
    """It does not read or write."""
    leaving = cached(100, 300, 200, leaving=True)
    waiting = cached(100, 300, 200, held_since_s=99.0)

    assert decide(leaving) == []
    assert grants(decide(waiting)) == {"r1": 300 * MB + QUANTUM}


def test_growth_comes_before_page_cache() -> None:
    """The rest goes to the cache, or the cache is dropped."""
    cache = pen("r2", 100, 300, cache_bytes=200 * MB, cache_full=True)
    actions = decide(scene(550, held("r1", 200, 99), cache))

    assert grants(actions) == {"r1": 200 * MB + STEP}
    assert [action.run for action in actions if isinstance(action, Trim)] == ["r2"]


def test_page_cache_is_left_alone_when_a_grant_shrinks() -> None:
    """It is not idle memory: dropping it would slow the run down for nothing."""
    idle = History(idle_since_s={"r1": 0.0})
    full = scene(1000, pen("r1", 100, 400, cache_bytes=290 * MB))
    half = scene(1000, pen("r1", 100, 400, cache_bytes=100 * MB))

    assert grants(decide(full, idle)) == {}
    assert grants(decide(half, idle)) == {"r1": 200 * MB + POLICY.headroom_bytes}


def test_a_waiter_takes_the_room_of_page_cache() -> None:
    """A run that needs memory of its own comes first."""
    cache = pen("r2", 100, 400, cache_bytes=300 * MB)

    assert grants(decide(scene(600, held("r1", 200, 99), cache))) == {
        "r2": 400 * MB - STEP,
        "r1": 200 * MB + STEP,
    }


def test_a_scaled_policy_is_the_same_for_small_and_fast_agents() -> None:
    """Times and sizes are scaled; distances that the kernel needs and shares stay the same."""
    fast = POLICY.scaled(10.0, 4.0)

    for name in TIMES:
        assert getattr(fast, name) == getattr(POLICY, name) / 10.0
    sizes = {"quantum_bytes", "headroom_bytes"}
    for name in sizes:
        assert getattr(fast, name) == getattr(POLICY, name) // 4
    # With less headroom a run would be held at once.
    assert POLICY.scaled(1.0, 100.0).headroom_bytes == POLICY.slim_bytes
    changed = {*TIMES, *sizes}
    same = [name for name in POLICY._fields if name not in changed]
    assert all(getattr(fast, name) == getattr(POLICY, name) for name in same)
    assert POLICY.scaled(1.0, 1.0) == POLICY
    assert {name for name in POLICY._fields if name.endswith("_s")} == set(TIMES)


def test_however_small_agents_are_what_one_keeps_is_above_its_mark() -> None:
    """Otherwise its own grant would hold it."""
    tiny = POLICY.scaled(1.0, 1000.0)

    assert min(tiny.headroom_bytes, tiny.slim_bytes) > tiny.arm_below_bytes + tiny.near_bytes


def test_what_page_cache_got_is_not_promised_twice() -> None:
    """A job that starts in the same round takes some of it back."""
    at = scene(700, pen("r1", 100, 300, cache_bytes=200 * MB, cache_full=True))
    at = replace(at, queue=[waiting_job(2)])

    actions = decide(at)

    assert admitted(actions) == ["next-2"]
    assert max(carried_out(at, actions)) <= at.lease_bytes
