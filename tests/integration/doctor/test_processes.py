"""The doctor sees what `ramherd ps` sees, on this very machine."""

import os
import subprocess
from pathlib import Path

from ramherd.core.model import Machine
from ramherd.core.units import GIB
from ramherd.doctor.check.processes import check_processes
from ramherd.doctor.facts import Processes
from ramherd.doctor.read.processes import read_running
from ramherd.store.sqlite import SqliteStore
from support.roots import Root


def test_an_agent_that_runs_is_seen_and_is_no_orphan(root: Root, tmp_path: Path) -> None:
    """Its client holds its stdin: us."""
    program = root.program("claude", Path("/bin/cat").read_bytes(), "real")
    child = subprocess.Popen([program], stdin=subprocess.PIPE, start_new_session=True)
    try:
        rows = {row.pid: row for row in read_running()}
    finally:
        child.communicate(timeout=10)

    assert (rows[child.pid].name, rows[child.pid].kind) == ("claude", "agent")
    assert rows[child.pid].orphan == ""
    assert os.getpid() not in rows
    assert not (tmp_path / "xdg_state_home").exists()
    total, *_rest = check_processes(Processes(Machine(GIB, GIB), tuple(rows.values())))
    assert " MCP servers use " in total.what


def test_a_store_is_read_where_there_is_one(tmp_path: Path) -> None:
    """What earlier looks wrote down tells who grows."""
    state = tmp_path / "xdg_state_home/ramherd"
    state.mkdir(parents=True, mode=0o700)
    SqliteStore(state / "ramherd.db").close()

    assert all(row.pid != os.getpid() for row in read_running())
