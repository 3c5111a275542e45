"""A healthy machine for each test, and state directories of its own."""

from pathlib import Path

import pytest

from support.roots import Root


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "RAMHERD_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    return Root(tmp_path / "machine")
