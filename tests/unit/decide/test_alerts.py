"""When the user is alerted: once at the upper mark, and again only after the lower one."""

from ramherd.core.model import Reason, Why
from ramherd.core.units import GIB, MIB
from ramherd.decide.alerts import Alert, AlertPolicy, Standing, Told, between, next_alerts

POLICY = AlertPolicy(limit_marks=(0.9, 0.8), budget_marks=(0.95, 0.85), leak_s=(600.0, 1200.0))


def tell(told: Told, *runs: Standing, used: int = 0) -> tuple[Told, list[tuple[str, Why]]]:
    told, alerts = next_alerts(runs, used, GIB, told, POLICY)
    return told, [(alert.run, alert.reason.why) for alert in alerts]


def test_a_run_near_its_limit_is_told_once() -> None:
    """The next alert comes only after the run was below the lower mark."""
    told = Told()
    heard = []
    for used in (850, 900, 990, 850, 900, 790, 900):
        told, alerts = tell(told, Standing("r", used, 1000))
        heard.append(len(alerts))

    assert heard == [0, 1, 0, 0, 0, 0, 1]


def test_a_run_without_a_limit_nears_none() -> None:
    """The governor decides its grants."""
    assert tell(Told(), Standing("r", 10 * GIB))[1] == []


def test_the_fleet_near_its_budget_is_told() -> None:
    """The reason has the numbers, and names no run."""
    told, alerts = tell(Told(), used=GIB)
    assert alerts == [("", Why.NEAR_BUDGET)]
    assert tell(told, used=GIB)[1] == []


def test_a_leak_is_told_when_its_limit_is_ten_minutes_away() -> None:
    """There is no alert for a leak with hours left."""
    slow = Standing("slow", 100 * MIB, GIB, slope_bytes_per_s=1000.0)
    fast = Standing("fast", 100 * MIB, GIB, slope_bytes_per_s=2.0 * MIB)

    assert tell(Told(), slow, fast)[1] == [("fast", Why.LEAK)]


def test_a_run_that_is_gone_is_forgotten() -> None:
    """Nothing is kept that could be applied to another run."""
    told, _alerts = tell(Told(), Standing("r", 950, 1000))
    assert tell(told)[0] == Told()


def test_no_budget_is_no_alarm() -> None:
    """The machine has not been measured yet."""
    assert next_alerts((), 10, 0, Told(), POLICY) == (Told(), [])


def test_marks_are_reached_at_their_value() -> None:
    """This holds for the upper and the lower mark; limits and the budget have their own."""
    told, alerts = tell(Told(), Standing("r", 899, 1000))
    assert alerts == []
    told, alerts = tell(told, Standing("r", 900, 1000))
    assert alerts == [("r", Why.NEAR_LIMIT)]
    told, _ = tell(told, Standing("r", 800, 1000))
    assert told == Told(frozenset({("r", Why.NEAR_LIMIT)}))
    assert tell(told, Standing("r", 799, 1000))[0] == Told()
    budget = 1000
    assert next_alerts((), 949, budget, Told(), POLICY)[1] == []
    fleet = Told(frozenset({("", Why.NEAR_BUDGET)}))
    assert next_alerts((), 950, budget, Told(), POLICY)[0] == fleet
    assert next_alerts((), 850, budget, fleet, POLICY) == (fleet, [])
    assert next_alerts((), 849, budget, fleet, POLICY) == (Told(), [])


def test_alerts_carry_the_numbers_compared() -> None:
    """Used and limit, used and budget, growth per minute and the seconds left."""
    leak = Standing("r", 910, 1000, slope_bytes_per_s=0.9)

    _told, alerts = next_alerts([leak], 990, 1000, Told(), POLICY)
    assert alerts == [
        Alert("", Reason(Why.NEAR_BUDGET, used_bytes=990, budget_bytes=1000)),
        Alert("r", Reason(Why.NEAR_LIMIT, used_bytes=910, limit_bytes=1000)),
        Alert("r", Reason(Why.LEAK, slope_bytes=54, left_s=100.0)),
    ]
    over = Standing("r", 1100, 1000, slope_bytes_per_s=3.0)
    assert next_alerts([over], 0, 1000, Told(), POLICY)[1][-1].reason == Reason(
        Why.LEAK, slope_bytes=180, left_s=0.0
    )
    third = Standing("r", 0, 1000, slope_bytes_per_s=3.0)
    assert next_alerts([third], 0, 1000, Told(), POLICY)[1][0].reason.numbers["left_s"] == 333.3


def test_a_leak_is_forgotten_when_it_has_twenty_minutes_left() -> None:
    """The alert comes at ten minutes; growth of one byte counts, no growth does not."""

    def leak(left_s: int) -> Standing:
        return Standing("r", 0, left_s, slope_bytes_per_s=1.0)

    known = Told(frozenset({("r", Why.LEAK)}))
    assert tell(Told(), leak(601))[1] == []
    assert tell(Told(), leak(600)) == (known, [("r", Why.LEAK)])
    assert tell(known, leak(1200)) == (known, [])
    assert tell(known, leak(1201)) == (Told(), [])
    assert tell(Told(), Standing("r", 0, 100, slope_bytes_per_s=0.0))[1] == []


def test_a_run_without_a_limit_does_not_hide_the_next() -> None:
    """Each run is checked."""
    runs = (Standing("none", 100), Standing("r", 95, 100))

    assert tell(Told(), *runs)[1] == [("r", Why.NEAR_LIMIT)]


def test_the_shipped_marks() -> None:
    """A tenth below a limit, a twentieth below the budget, ten minutes."""
    assert AlertPolicy() == POLICY


def test_a_mark_is_reached_from_its_own_value_on() -> None:
    """1 above the upper mark, 0 between the two, -1 below."""
    assert [between(share, 0.9, 0.8) for share in (0.9, 0.89, 0.8, 0.79)] == [1, 0, 0, -1]
