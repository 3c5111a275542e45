"""An ordinary user on a systemd machine, and the doctor on a fresh one: a boot of QEMU each."""

from integration.conftest import need
from machines.vm import PYTHON, run_in_vm

# Some eighty commands and ten looks of the doctor, on a processor that is emulated.
DOCTOR_S = 420


def run_file(name: str, limit_s: float = 420) -> None:
    need("qemu-system-x86_64", "qemu-system-x86")
    need("mmdebstrap", "mmdebstrap")
    need("genext2fs", "genext2fs")
    command = [PYTHON, "-m", "pytest", f"tests/e2e/vm/{name}", "--durations=0", "-rP"]
    ended = run_in_vm(command, limit_s=limit_s)
    print(ended.out, ended.err, f"{ended.wall_s:.0f} s with the boot", sep="\n")
    assert ended.code == 0


def test_an_ordinary_user_on_systemd() -> None:
    """Kernel limits without any rights, through the user manager."""
    run_file("in_session.py")


def test_the_doctor_on_a_fresh_debian() -> None:
    """Every command that it prints works, and a fix leaves no finding. In a boot of its own: runs
    leave directories, and kernel kills that the doctor reports.
    """
    run_file("in_doctor.py", DOCTOR_S)
