"""/proc: text of any kind, and processes that are gone."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.errors import RamherdError
from ramherd.core.model import ProcId
from ramherd.system.procfs import (
    PAGE,
    ignores_signal,
    is_running,
    parse_kib_fields,
    parse_stat,
    read_anonymous_bytes,
    read_boot_id,
    read_cmdline,
    read_environ,
    read_meminfo,
    read_mounts,
    read_peak_rss_bytes,
    read_process,
    read_processes,
    read_text,
    read_variable,
)

REST = (
    "S 41 42 43 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 366008 3133440 390 18446744073709551615"
    " 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
)
MEMINFO = """\
MemTotal:       16384000 kB
MemFree:          500000 kB
MemAvailable:   12000000 kB
HugePages_Total:       3
Hugepagesize:       2048 kB
"""
HOSTILE = [
    "foo) Z (",
    ")",
    "(",
    "",
    " ",
    "a b",
    "a\nb",
    ") S 1 1 1 (",
    "\udcff",
    "a) R 1 2 3\n4 (b",
]


def write_stat(proc: Path, pid: int, name: str = "x", rest: str = REST) -> None:
    (proc / str(pid)).mkdir(parents=True, exist_ok=True)
    text = f"{pid} ({name}) {rest}\n"
    (proc / str(pid) / "stat").write_bytes(text.encode(errors="surrogateescape"))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_changes_no_field(name: str) -> None:
    """Any program can call itself `foo) Z (`: it is read as a name and nothing else."""
    found = parse_stat(f"40 ({name}) {REST}\n".encode(errors="surrogateescape"))

    assert found.id == ProcId(40, 366008)
    assert (found.name, found.state) == (name, "S")
    assert (found.ppid, found.pgid, found.sid) == (41, 42, 43)


@given(st.text(max_size=15))
def test_any_name_changes_no_field(name: str) -> None:
    """Fifteen characters of whatever kind."""
    found = parse_stat(f"40 ({name}) {REST}\n".encode(errors="surrogateescape"))

    assert (found.id, found.name, found.ppid) == (ProcId(40, 366008), name, 41)


@pytest.mark.parametrize(("state", "alive"), [*((c, True) for c in "RSDTtIWP"), ("Z", False),
                                              ("X", False), ("x", False)])  # fmt: skip
def test_a_zombie_is_not_alive(state: str, alive: bool) -> None:
    """Frozen, stopped and sleeping processes are; what waits to be reaped is not."""
    assert parse_stat(f"1 (a) {state}{REST[1:]}".encode()).is_alive is alive


def test_this_very_process_is_read() -> None:
    """The real /proc says what os says."""
    found = read_process(os.getpid())

    assert found is not None
    assert (found.id.pid, found.ppid) == (os.getpid(), os.getppid())
    assert (found.pgid, found.sid) == (os.getpgrp(), os.getsid(0))
    assert is_running(found.id)


def test_a_process_that_is_gone_is_an_ordinary_answer(tmp_path: Path) -> None:
    """None, or nothing used, and no exception."""
    assert read_process(40, tmp_path) is None
    assert read_anonymous_bytes(40, tmp_path) == 0
    assert read_peak_rss_bytes(40, tmp_path) == 0
    assert read_variable(40, "X", tmp_path) is None
    assert not is_running(ProcId(40, 1), tmp_path)
    assert read_text(tmp_path / "none") is None


def test_all_processes_are_found_and_nothing_else(tmp_path: Path) -> None:
    """Directories that are numbers; one that vanishes meanwhile is absent."""
    write_stat(tmp_path, 40, "foo) Z (")
    write_stat(tmp_path, 7, "a\nb")
    (tmp_path / "99").mkdir()
    (tmp_path / "self").mkdir()
    (tmp_path / "meminfo").write_text(MEMINFO)

    assert {proc.id.pid: proc.name for proc in read_processes(tmp_path)} == {
        40: "foo) Z (",
        7: "a\nb",
    }


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_process_that_we_may_not_look_at_is_passed_over(tmp_path: Path) -> None:
    """A /proc mounted with hidepid=1 lists every process and shows only our own."""
    write_stat(tmp_path, 40)
    (tmp_path / "40" / "stat").chmod(0)

    assert list(read_processes(tmp_path)) == []


def test_a_pid_that_was_given_again_is_someone_else(tmp_path: Path) -> None:
    """Identity is the pid and the start time; a zombie is nobody any more."""
    write_stat(tmp_path, 40)

    assert is_running(ProcId(40, 366008), tmp_path)
    assert not is_running(ProcId(40, 366007), tmp_path)
    write_stat(tmp_path, 40, rest="Z" + REST[1:])
    assert not is_running(ProcId(40, 366008), tmp_path)


def test_memory_of_its_own_is_resident_less_shared(tmp_path: Path) -> None:
    """In pages; a kernel thread has none, and shared is never more than resident."""
    for pid, statm in ((1, "900 300 100 1 0 50 0"), (2, "0 0 0 0 0 0 0"), (3, "9 1 2 0 0 0 0")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "statm").write_text(statm)

    assert [read_anonymous_bytes(pid, tmp_path) for pid in (1, 2, 3)] == [200 * PAGE, 0, 0]


def test_fields_in_kb_become_bytes() -> None:
    """Lines of another form are passed over: counts, names with colons, garbage."""
    text = MEMINFO + "Name:\tfoo: 12 kB\nVmHWM:\t  9000 kB\nThreads:\t1\nbroken\nX: -5 kB\n\n"

    assert parse_kib_fields(text) == {
        "MemTotal": 16384000 * 1024,
        "MemFree": 500000 * 1024,
        "MemAvailable": 12000000 * 1024,
        "Hugepagesize": 2048 * 1024,
        "VmHWM": 9000 * 1024,
    }


@given(st.text())
def test_fields_of_any_text_are_read_without_an_error(text: str) -> None:
    """A process chooses its own name, and status shows it."""
    assert all(value >= 0 for value in parse_kib_fields(text).values())


def test_a_name_cannot_pass_for_a_field(tmp_path: Path) -> None:
    """The kernel escapes newlines in status; another `VmHWM` there is the process's own."""
    (tmp_path / "40").mkdir()
    (tmp_path / "40" / "status").write_text("Name:\tVmHWM: 1 kB\\n\nVmHWM:\t 100 kB\n")

    assert read_peak_rss_bytes(40, tmp_path) == 100 * 1024


def test_the_machines_memory(tmp_path: Path) -> None:
    """Total and available; a kernel that does not tell is an error that names the file."""
    (tmp_path / "meminfo").write_text(MEMINFO)
    assert read_meminfo(tmp_path) == (16384000 * 1024, 12000000 * 1024)

    (tmp_path / "meminfo").write_text("MemTotal: 5 kB\n")
    with pytest.raises(RamherdError, match=f"{tmp_path}/meminfo has no MemAvailable"):
        read_meminfo(tmp_path)


def test_an_environment_is_searched_by_whole_names(tmp_path: Path) -> None:
    """Not by parts of names or of values; bytes of any kind do no harm."""
    (tmp_path / "40").mkdir()
    data = b"MY_TAG=no\0X=TAG=no\0\xff\xfe\0TAG=yes\xff\0TAG=late\0"
    (tmp_path / "40" / "environ").write_bytes(data)

    assert read_variable(40, "TAG", tmp_path) == "yes\ufffd"
    assert read_variable(40, "TA", tmp_path) is None


def test_the_boot_id_is_one_line(tmp_path: Path) -> None:
    """Without its newline."""
    path = tmp_path / "sys/kernel/random/boot_id"
    path.parent.mkdir(parents=True)
    path.write_text("0f-1a\n")

    assert read_boot_id(tmp_path) == "0f-1a"
    assert read_boot_id()


def write_files(proc: Path, **files: bytes) -> None:
    (proc / "40").mkdir(exist_ok=True)
    for name, data in files.items():
        (proc / "40" / name).write_bytes(data)


def test_the_words_of_a_command_line(tmp_path: Path) -> None:
    """Bytes of any kind; empty words count, and a zombie has none."""
    write_files(tmp_path, cmdline=b"/bin/x\0\0a b\0\xff\0")
    assert read_cmdline(40, tmp_path) == ("/bin/x", "", "a b", "\udcff")

    assert read_cmdline(40, tmp_path, most_bytes=6) == ("/bin/x",)
    assert read_cmdline(41, tmp_path) is None


def test_of_two_variables_with_one_name_the_first_counts(tmp_path: Path) -> None:
    """As for getenv(3)."""
    write_files(tmp_path, environ=b"A=1\0B=\0A=2\0broken\0")

    assert read_environ(40, tmp_path) == {"A": "1", "B": ""}
    assert read_variable(40, "A", tmp_path) == "1"
    assert read_environ(41, tmp_path) is None


@pytest.mark.parametrize(("mask", "ignored"), [("1", True), ("4001", True), ("4000", False)])
def test_a_signal_that_is_ignored(tmp_path: Path, mask: str, ignored: bool) -> None:
    """One bit for each signal, from 1 on: SIGHUP is the lowest."""
    write_files(tmp_path, status=f"Name:\tx\nSigIgn:\t{mask:0>16}\nSigCgt:\t0\n".encode())

    assert ignores_signal(40, 1, tmp_path) is ignored
    assert not ignores_signal(41, 1, tmp_path)


def test_mounts_are_points_and_types(tmp_path: Path) -> None:
    """Optional fields before the dash may be any number; a space is escaped."""
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_text(
        "20 1 8:1 / / rw shared:1 master:2 - ext4 /dev/sda1 rw\n"
        "21 20 0:5 / /mnt/a\\040b rw - tmpfs tmpfs rw\n"
    )

    assert read_mounts(tmp_path) == [("/", "ext4"), ("/mnt/a b", "tmpfs")]
