"""Signs that memory or the CPUs are short."""

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.measure.cgroups import Trees, parse_flat
from ramherd.measure.pressure import (
    Pressure,
    PressureGauge,
    parse_pressure,
    read_share,
    swapped_in_bytes,
)
from ramherd.system.procfs import PAGE

MEMORY = """\
some avg10=12.50 avg60=3.05 avg300=0.80 total=81234567
full avg10=99.00 avg60=0.00 avg300=0.00 total=1234
"""
# Before 5.13 the CPUs have no `full`.
CPU = "some avg10=90.00 avg60=50.00 avg300=10.00 total=1\n"
ALONE = Trees({}, None)


def test_the_share_in_which_somebody_waited() -> None:
    """Of the last ten seconds, not the one in which everybody did."""
    assert parse_pressure(MEMORY) == 0.125
    assert parse_pressure(CPU) == 0.9


@pytest.mark.parametrize("text", ["", "full avg10=50.00 avg60=0.00 avg300=0.00 total=1\n"])
def test_without_a_share_there_is_none(text: str) -> None:
    """Kernels without pressure files have no pressure."""
    assert parse_pressure(text) == 0.0


@given(st.floats(0, 100))
def test_a_share_is_between_none_and_all(percent: float) -> None:
    """The kernel writes percents with two digits."""
    text = MEMORY.replace("12.50", f"{percent:.2f}")

    assert parse_pressure(text) == pytest.approx(percent / 100, abs=1e-4)


def test_what_came_back_from_swap_is_in_pages() -> None:
    """Beside much else; a kernel without swap does not say."""
    assert swapped_in_bytes(parse_flat("nr_free_pages 9\npswpin 7\npswpout 5\n")) == 7 * PAGE
    assert swapped_in_bytes(parse_flat("nr_free_pages 9\n")) == 0


def write_proc(proc: Path, swapped_in: int, memory: str = MEMORY) -> None:
    (proc / "pressure").mkdir(parents=True, exist_ok=True)
    (proc / "pressure/memory").write_text(memory)
    (proc / "pressure/cpu").write_text(CPU)
    (proc / "vmstat").write_text(f"pswpin {swapped_in}\n")


def test_swapping_is_a_rate_between_two_looks(tmp_path: Path) -> None:
    """What was swapped in before we looked first is old; two looks at one moment are one."""
    gauge = PressureGauge(ALONE, tmp_path)
    write_proc(tmp_path, 1000)
    assert gauge.read(10.0) == Pressure(0.125, 0.9, 0.0)
    write_proc(tmp_path, 1020)
    assert gauge.read(12.0).swap_in_bytes_per_s == 10 * PAGE
    assert gauge.read(12.0).swap_in_bytes_per_s == 0.0
    assert gauge.read(13.0).swap_in_bytes_per_s == 0.0


def test_a_machine_that_says_nothing_has_no_pressure(tmp_path: Path) -> None:
    """No /proc/pressure, no /proc/vmstat."""
    gauge = PressureGauge(ALONE, tmp_path)

    assert (gauge.read(1.0), gauge.read(2.0)) == (Pressure(), Pressure())


def test_the_worse_of_machine_and_own_cgroup_counts(tmp_path: Path) -> None:
    """In a container that is full, the machine may be at ease; and the other way round."""
    write_proc(tmp_path / "proc", 0)
    own = tmp_path / "own"
    own.mkdir()
    gauge = PressureGauge(Trees({}, own), tmp_path / "proc")
    assert gauge.read(1.0).memory == 0.125

    for percent, worse in (("40.00", 0.4), ("1.00", 0.125)):
        (own / "memory.pressure").write_text(MEMORY.replace("12.50", percent))
        assert gauge.read(2.0).memory == worse


def test_a_file_that_is_there_and_cannot_be_read_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With `psi=0` the kernel has the files, and refuses to read them."""

    def refuse(_path: Path) -> str:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr("ramherd.measure.pressure.read_text", refuse)

    assert read_share(Path("/proc/pressure/memory")) == 0.0
