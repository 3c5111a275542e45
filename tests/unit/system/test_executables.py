"""Programs in PATH."""

from pathlib import Path

import pytest

from ramherd.system.executables import find_executable


@pytest.fixture
def path(tmp_path: Path) -> str:
    """One directory with what cannot be executed, one with a program."""
    for name in ("first", "second"):
        (tmp_path / name / "directory").mkdir(parents=True)
    (tmp_path / "first/tool").write_text("")
    (tmp_path / "second/tool").write_text("")
    (tmp_path / "second/tool").chmod(0o755)
    return f"{tmp_path}/missing:{tmp_path}/first:{tmp_path}/second"


def test_the_first_that_can_be_executed(path: str, tmp_path: Path) -> None:
    """Not a file without that right, not a directory."""
    assert find_executable("tool", path) == f"{tmp_path}/second/tool"
    assert find_executable("directory", path) is None
    assert find_executable("missing", path) is None


def test_a_path_is_not_searched_for(path: str, tmp_path: Path) -> None:
    """It is there, or it is not."""
    assert find_executable(f"{tmp_path}/second/tool", path) == f"{tmp_path}/second/tool"
    assert find_executable(f"{tmp_path}/first/tool", path) is None


def test_an_empty_part_is_the_current_directory(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As shells read it."""
    monkeypatch.chdir(tmp_path / "second")

    assert find_executable("tool", "") == "./tool"
