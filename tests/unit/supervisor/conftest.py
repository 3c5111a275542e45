"""Herds on a made-up machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fakes import fake_machine
from support.herds import Run, herds_at


@pytest.fixture
def run_herd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs jobs on a made-up machine."""
    monkeypatch.setattr("ramherd.supervisor.loop.read_machine", fake_machine)
    monkeypatch.setattr("ramherd.supervisor.loop.read_engine_clients", dict)
    with herds_at(tmp_path) as run:
        yield run
