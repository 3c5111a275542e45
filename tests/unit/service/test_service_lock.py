"""One service for each store, and one for each runtime directory."""

import errno
import os
from contextlib import closing
from pathlib import Path

import pytest

from ramherd.core.errors import UsageError
from ramherd.service.service_lock import ServiceLock


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "state", tmp_path / "runtime"


def test_a_second_service_is_refused_by_the_pid_of_the_first(places: tuple[Path, Path]) -> None:
    """Whatever a service before them has left in the file."""
    for place in places:
        place.mkdir()
        (place / "service.lock").write_text("1234567890\n")
    with closing(ServiceLock(*places)), pytest.raises(UsageError, match=rf"pid {os.getpid()}\)"):
        ServiceLock(*places)


def test_a_full_disk_does_not_keep_a_service_from_its_locks(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither at its start, nor when its runtime directory is made again."""

    def refuse(*_values: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", refuse)
    with closing(ServiceLock(*places)) as lock:
        (places[1] / "service.lock").unlink()
        assert lock.restore(places[1])
        assert not lock.restore(places[1])
