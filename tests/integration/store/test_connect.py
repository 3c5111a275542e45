"""The store, for those who only read it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ramherd.core.errors import StoreError
from ramherd.store.connect import open_store, open_store_to_read
from ramherd.store.listing import list_herds
from ramherd.store.sql.migrations import MIGRATIONS
from ramherd.store.sqlite import SqliteStore, connect_to_read, explain

OLD = Path(__file__).parents[2] / "data/store-3.db"


def test_reading_makes_no_store(tmp_path: Path) -> None:
    """It is as if there were an empty one."""
    warned: list[str] = []
    with closing(open_store_to_read(tmp_path / "none", warned.append)) as store:
        assert list_herds(store) == []
    assert (list(tmp_path.iterdir()), warned) == ([], [])


def test_an_old_store_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    """It is brought up to date in memory; the file stays as it is."""
    path = tmp_path / "ramherd.db"
    shutil.copy(OLD, path)
    before = path.read_bytes()
    with closing(SqliteStore(path, connect_to_read)) as store:
        assert store.read("SELECT max(number) FROM migrations") == [(len(MIGRATIONS),)]
        with closing(store.open_another()) as other:
            assert list_herds(other) == list_herds(store)
    assert path.read_bytes() == before


def test_a_log_without_its_index_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a backup of two of the three files, on a disk that is read-only."""
    with closing(open_store(tmp_path)) as store:
        store.write("CREATE TABLE later (a)")
        store.commit()
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"ramherd.db{suffix}", tmp_path / f"copy{suffix}")
    state = tmp_path / "state"
    state.mkdir(0o700)
    for suffix in ("", "-wal"):
        os.rename(tmp_path / f"copy{suffix}", state / f"ramherd.db{suffix}")
    monkeypatch.setattr(os, "access", lambda _path, right: right == os.R_OK)
    warned: list[str] = []
    with closing(open_store_to_read(state, warned.append)):
        pass
    assert len(warned) == 1
    assert warned[0].startswith(f"{state} cannot be written to: the last ")


def test_a_link_is_not_followed_by_readers_either(tmp_path: Path) -> None:
    """Neither with the right to write nor without."""
    with closing(open_store(tmp_path)):
        pass
    (tmp_path / "state").mkdir(0o700)
    link = tmp_path / "state/ramherd.db"
    link.symlink_to(tmp_path / "ramherd.db")
    for connect in (None, connect_to_read):
        with pytest.raises(StoreError, match="it is a symbolic link") as caught:
            SqliteStore(link, connect)
        assert str(caught.value).count(str(link)) == 1
        assert caught.value.hint.startswith("remove the link")


def test_the_line_names_the_file_that_is_wrong(tmp_path: Path) -> None:
    """The store itself is named once; a file beside it by its own path."""
    path = tmp_path / "ramherd.db"
    foreign = explain(path, PermissionError(1, "it belongs to uid 1, not to uid 0", f"{path}-wal"))
    assert str(foreign) == (
        f"cannot use the store {path}: {path}-wal: it belongs to uid 1, not to uid 0"
    )
    assert foreign.hint.startswith("chown it")
    assert "disk I/O" in str(explain(path, sqlite3.OperationalError("disk I/O error")))


CREATE = """
import sys
from pathlib import Path
from ramherd.store.sqlite import SqliteStore
sys.stdin.read()
SqliteStore(Path(sys.argv[1])).close()
"""


def test_processes_that_create_the_store_at_the_same_time(tmp_path: Path) -> None:
    """None finds it locked."""
    command = [sys.executable, "-c", CREATE, str(tmp_path / "ramherd.db")]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(8)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None

    assert [process.communicate()[1] for process in started] == [b""] * 8
