"""When somebody is told: once, at the upper mark, and again only after the lower."""

from ramherd.core.model import Why
from ramherd.core.units import GIB, MIB
from ramherd.decide.alerts import AlertPolicy, Standing, Told, next_alerts

POLICY = AlertPolicy(limit_marks=(0.9, 0.8), budget_marks=(0.95, 0.85), leak_s=(600.0, 1200.0))


def tell(told: Told, *runs: Standing, used: int = 0) -> tuple[Told, list[tuple[str, Why]]]:
    told, alerts = next_alerts(runs, used, GIB, told, POLICY)
    return told, [(alert.run, alert.reason.why) for alert in alerts]


def test_a_run_near_its_limit_is_told_once() -> None:
    """Until it has been below the lower mark."""
    told = Told()
    heard = []
    for used in (850, 900, 990, 850, 900, 790, 900):
        told, alerts = tell(told, Standing("r", used, 1000))
        heard.append(len(alerts))

    assert heard == [0, 1, 0, 0, 0, 0, 1]


def test_a_run_without_a_limit_nears_none() -> None:
    """Its grants are the governor's to give."""
    assert tell(Told(), Standing("r", 10 * GIB))[1] == []


def test_the_fleet_near_its_budget_is_told() -> None:
    """With the numbers, and without a run."""
    told, alerts = tell(Told(), used=GIB)
    assert alerts == [("", Why.NEAR_BUDGET)]
    assert tell(told, used=GIB)[1] == []


def test_a_leak_is_told_when_its_limit_is_ten_minutes_away() -> None:
    """Not one that has hours left."""
    slow = Standing("slow", 100 * MIB, GIB, slope_bytes_per_s=1000.0)
    fast = Standing("fast", 100 * MIB, GIB, slope_bytes_per_s=2.0 * MIB)

    assert tell(Told(), slow, fast)[1] == [("fast", Why.LEAK)]


def test_a_run_that_is_gone_is_forgotten() -> None:
    """Nothing is remembered that could be of another."""
    told, _alerts = tell(Told(), Standing("r", 950, 1000))
    assert tell(told)[0] == Told()


def test_no_budget_is_no_alarm() -> None:
    """Before the first look at the machine."""
    assert next_alerts((), 10, 0, Told(), POLICY) == (Told(), [])
