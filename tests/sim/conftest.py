"""A scene has many parts: on a busy machine making one up may take a while."""

import pytest

from support.profiles import use_profile


def pytest_collectstart(collector: pytest.Collector) -> None:
    use_profile("governor", collector)
