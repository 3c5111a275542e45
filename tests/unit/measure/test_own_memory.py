"""What an agent's own processes hold, without its tool calls."""

from pathlib import Path

import pytest

from ramherd.core.model import ProcId
from ramherd.measure.own_memory import SETTLED_S, read_own_bytes
from ramherd.system.procfs import PAGE, TICKS_PER_S

FIRST = ProcId(10, 5000)
LAST = 5000 + int(SETTLED_S * TICKS_PER_S)


def write(proc: Path, pid: int, start_ticks: int, pages: int, state: str = "S") -> int:
    (proc / str(pid)).mkdir()
    before = " ".join(["0"] * 15)
    (proc / str(pid) / "stat").write_text(
        f"{pid} (a) b) {state} 1 1 1 {before} {start_ticks} 0 0 0\n"
    )
    (proc / str(pid) / "statm").write_text(f"9999 {pages + 50} 50 0 0 0 0\n")
    return pid


def test_what_began_with_the_run_is_the_agents_own(tmp_path: Path) -> None:
    """Wrappers, the agent and its servers, up to when the slowest has settled."""
    pids = [write(tmp_path, 10, 5000, 3), write(tmp_path, 11, LAST, 4)]

    assert read_own_bytes(FIRST, pids, tmp_path) == 7 * PAGE


def test_while_a_tool_call_is_open_nobody_can_tell(tmp_path: Path) -> None:
    """What begins later is one, wherever it stands in the list."""
    own, tool = write(tmp_path, 10, 5000, 3), write(tmp_path, 11, LAST + 1, 4)

    assert read_own_bytes(FIRST, [own, tool], tmp_path) is None
    assert read_own_bytes(FIRST, [tool, own], tmp_path) is None


@pytest.mark.parametrize("state", ["Z", "X"])
def test_who_is_gone_holds_nothing_and_keeps_no_call_open(tmp_path: Path, state: str) -> None:
    """A zombie waits for its parent; a pid that is gone is an ordinary answer."""
    own, dead = write(tmp_path, 10, 5000, 3), write(tmp_path, 11, LAST + 1, 4, state)

    assert read_own_bytes(FIRST, [own, dead, 99], tmp_path) == 3 * PAGE


def test_a_run_that_has_not_begun_is_unknown(tmp_path: Path) -> None:
    """Nobody said yet which process is its first."""
    assert read_own_bytes(None, [write(tmp_path, 10, 5000, 3)], tmp_path) is None
    assert read_own_bytes(FIRST, [], tmp_path) == 0
