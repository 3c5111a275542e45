"""A scene has many parts: on a busy machine making one up may take a while."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "governor", deadline=None, database=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
settings.load_profile("governor")
