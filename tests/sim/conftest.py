"""A scene has many parts: on a busy machine generating one may take a while."""

import pytest

from support.profiles import use_profile


def pytest_collectstart(collector: pytest.Collector) -> None:
    use_profile("governor", collector)
