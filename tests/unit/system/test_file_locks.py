"""/proc/locks, as kernels write it."""

import os
from pathlib import Path

from ramherd.system.file_locks import FileLock, find_lock_holders, parse_locks

TEXT = """\
1: POSIX  ADVISORY  READ 27052 fe:00:2156710 128 128
2: POSIX  ADVISORY  WRITE 27052 fe:00:2156710 120 120
2: -> POSIX  ADVISORY  WRITE 31 fe:00:2156710 120 120
3: FLOCK  ADVISORY  WRITE 699 00:19:857 0 EOF
4: OFDLCK ADVISORY  WRITE -1 00:19:857 0 EOF
"""


def test_exclusive_locks_that_are_held_are_found() -> None:
    """Not shared ones, and not those who wait."""
    assert list(parse_locks(TEXT)) == [
        FileLock(27052, 2156710, 120, 120), FileLock(699, 857, 0, None), FileLock(-1, 857, 0, None),
    ]  # fmt: skip


def test_a_lock_covers_its_bytes() -> None:
    """To the end, if it has no last one."""
    lock = FileLock(1, 1, 120, 121)
    assert [lock.covers(byte) for byte in (119, 120, 121, 122)] == [False, True, True, False]
    assert FileLock(1, 1, 5, None).covers(1 << 40)


def test_the_holders_of_a_byte_are_other_processes(tmp_path: Path) -> None:
    """One that cannot be named (another pid namespace) is left out, and so are we."""
    file = tmp_path / "file"
    file.touch()
    inode = file.stat().st_ino
    pids = (7, 0, -1, os.getpid())
    lines = [f"{n}: POSIX ADVISORY WRITE {pid} 08:01:{inode} 3 3" for n, pid in enumerate(pids)]
    (tmp_path / "locks").write_text("\n".join(lines))

    assert find_lock_holders(str(file), 3, proc=str(tmp_path)) == [7]
    assert find_lock_holders(str(file), 4, proc=str(tmp_path)) == []
    assert find_lock_holders(str(tmp_path / "none"), 3, proc=str(tmp_path)) == []
