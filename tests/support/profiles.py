"""How thoroughly Hypothesis looks, by folder."""

import pytest
from hypothesis import HealthCheck, settings

# A test that fails only now and then is read by nobody; `deep` is for looking for bugs.
NO_FIXTURE_CHECK = [HealthCheck.function_scoped_fixture]
settings.register_profile(
    "unit", deadline=None, database=None, derandomize=True, max_examples=60,
    suppress_health_check=NO_FIXTURE_CHECK,
)  # fmt: skip
settings.register_profile(
    "deep", deadline=None, database=None, max_examples=3000,
    suppress_health_check=NO_FIXTURE_CHECK,
)  # fmt: skip
# A scene has many parts: on a busy machine making one up may take a while.
settings.register_profile(
    "governor", deadline=None, database=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip


def use_profile(name: str, collector: pytest.Collector) -> None:
    """For what is read next. A test keeps the settings that hold while its file is imported."""
    if not collector.config.getoption("--hypothesis-profile"):
        settings.load_profile(name)
