"""The same examples each time, as in the unit tests."""

import pytest

from support.profiles import use_profile


def pytest_collectstart(collector: pytest.Collector) -> None:
    use_profile("unit", collector)
