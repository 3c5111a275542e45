"""No unit test leaves a file descriptor behind, and none is slow or different the next time."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from unit.fakes import fake_machine
from unit.herds import Run, herds_at

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
settings.load_profile("unit")


def open_descriptors() -> set[str]:
    # The one that listdir itself opens is closed when it returns.
    return {fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}


@pytest.fixture(autouse=True)
def no_descriptor_left() -> Iterator[None]:
    """A leak of one descriptor a run would end a herd of a thousand."""
    before = open_descriptors()
    yield
    if open_descriptors() - before:
        gc.collect()
    left = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in open_descriptors() - before}
    assert not left


@pytest.fixture
def run_herd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs jobs on a made-up machine."""
    monkeypatch.setattr("ramherd.supervisor.read_machine", fake_machine)
    monkeypatch.setattr("ramherd.supervisor.read_engine_clients", dict)
    with herds_at(tmp_path) as run:
        yield run
