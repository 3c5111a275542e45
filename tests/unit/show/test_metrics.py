"""Prometheus text: a pure function of what the service says of itself."""

import json
import re
from pathlib import Path

from ramherd.core.service_status import (
    DURATION_BOUNDS,
    Counters,
    Histogram,
    RunStatus,
    ServiceStatus,
    count,
    parse_status,
)
from ramherd.show.metrics import METRICS, Queue, render_metrics

ROOT = Path(__file__).parents[3]
SAMPLE = re.compile(r'[a-z_]+(\{([a-z]+="([^"\\\n]|\\["\\n])*",?)+\})? [-+0-9.e]+')


def busy() -> ServiceStatus:
    counters = Counters(admissions=3, preemptions=1)
    count(counters.holds, "growth")
    count(counters.holds, "growth")
    count(counters.runs, "done")
    for value in (0.5, 2.0, 1e9):
        counters.durations.add(value)
    runs = (RunStatus("R1", "J1", 'a "b"\\\n', 1, 100, 200, 3, 1.5, held=True),)
    return ServiceStatus(pid=7, level="tight", budget_bytes=1000, runs=runs, counters=counters)


def render(status: ServiceStatus, queue: Queue | None = None) -> dict[str, float]:
    text = render_metrics(status, queue or Queue({}, None, 0.0, paused=False))
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    for line in samples:
        assert SAMPLE.fullmatch(line), line
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in samples}


def test_each_number_has_its_line() -> None:
    """With labels that hold any name, and a histogram that adds up."""
    found = render(busy(), Queue({"queued": 4}, 100.0, 130.0, paused=True))

    assert found["ramherd_budget_bytes"] == 1000
    assert found['ramherd_level{level="tight"}'] == 1
    assert found['ramherd_level{level="calm"}'] == 0
    assert found['ramherd_jobs{state="queued"}'] == 4
    assert found["ramherd_queue_age_seconds"] == 30
    assert found['ramherd_holds_total{reason="growth"}'] == 2
    assert found['ramherd_run_used_bytes{job="J1",name="a \\"b\\"\\\\\\n"}'] == 100
    assert found['ramherd_run_duration_seconds_bucket{le="5"}'] == 2
    assert found['ramherd_run_duration_seconds_bucket{le="+Inf"}'] == 3
    assert found["ramherd_run_duration_seconds_count"] == 3
    assert (found["ramherd_paused"], found["ramherd_runs_held"]) == (1, 1)


def test_a_service_that_says_nothing_yet_has_metrics() -> None:
    """Zeroes, and that it is not up."""
    assert render(ServiceStatus())["ramherd_up"] == 0


def test_a_status_survives_its_file() -> None:
    """Also one of a newer ramherd, with keys that this one does not know."""
    written = busy().as_json()
    read = parse_status(json.dumps(written).encode())

    assert json.dumps(read.as_json()) == json.dumps(written)
    assert parse_status(json.dumps({**written, "mood": 1}).encode()).pid == 7


def test_a_value_on_a_bound_belongs_below_it() -> None:
    """As Prometheus has it."""
    times = Histogram(DURATION_BOUNDS)
    times.add(1.0)
    assert times.counts[0] == 1


def test_the_page_lists_every_metric() -> None:
    """docs/metrics.md, in this order, with the words of the code."""
    page = (ROOT / "docs/metrics.md").read_text()
    listed = re.findall(r"^\| `(ramherd_\w+)` \| (\w+) \| (.*) \|$", page, re.MULTILINE)

    assert listed == [(metric.name, metric.kind, metric.help) for metric in METRICS]


def test_the_examples_ask_for_metrics_that_there_are() -> None:
    """The dashboard and the alert rules."""
    names = {metric.name for metric in METRICS}
    names |= {f"{name}{end}" for name in names for end in ("_bucket", "_sum", "_count")}
    for path in ("examples/grafana-dashboard.json", "examples/prometheus-alerts.yml"):
        asked = set(re.findall(r"ramherd_\w+", (ROOT / path).read_text()))
        assert asked
        assert asked <= names
    json.loads((ROOT / "examples/grafana-dashboard.json").read_text())
