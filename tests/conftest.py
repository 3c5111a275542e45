"""What all tests share: the list of what was skipped, and `reached` for property tests."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

from support.reached import Reached

E2E = Path(__file__).with_name("e2e")


@pytest.fixture
def reached(request: pytest.FixtureRequest) -> Iterator[Reached]:
    """Fails a property test that reaches its precondition in fewer than a tenth of its examples."""
    made = Reached()
    yield made
    made.check()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests that run one after another begin first: as the last ones they would run alone."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    print_faults(terminalreporter)
    reasons = Counter(reason_of(report) for report in terminalreporter.stats.get("skipped", []))
    if reasons:
        terminalreporter.section("skipped, and why")
    for reason, number in reasons.most_common():
        terminalreporter.line(f"{number:4}  {reason}")
    if is_make_test(config):
        terminalreporter.line(
            "not part of `make test`: real agents, chaos, the zoo, a minimal Debian, User-mode "
            "Linux and QEMU (`make test-all`)"
        )


def print_faults(reporter: TerminalReporter) -> None:
    """What each broken disk, clock or keeper cost: nothing, or the test has failed."""
    reports = [*reporter.stats.get("passed", []), *reporter.stats.get("failed", [])]
    found = [
        value for report in reports for name, value in report.user_properties if name == "fault"
    ]
    if found:
        reporter.section("faults, and what was lost")
    for fault, lost in sorted(found):
        counted = ", ".join(f"{number} {what.replace('_', ' ')}" for what, number in lost.items())
        lost_words = counted if any(lost.values()) else f"nothing ({counted})"
        reporter.line(f"{fault}: lost {lost_words}")


def reason_of(report: pytest.TestReport) -> str:
    """A skip is a file, a line and a reason."""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


def is_make_test(config: pytest.Config) -> bool:
    """All the tests outside of tests/e2e were asked for."""
    asked = {Path(config.rootpath, arg).resolve() for arg in config.args}
    return {E2E.with_name(name) for name in ("unit", "sim", "integration")} <= asked
