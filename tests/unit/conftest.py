"""No unit test leaves a file descriptor behind, and none is slow or different the next time."""

import gc
import os
from collections.abc import Iterator

import pytest

from support.profiles import use_profile


def pytest_collectstart(collector: pytest.Collector) -> None:
    use_profile("governor" if collector.path.parent.name == "governor" else "unit", collector)


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
