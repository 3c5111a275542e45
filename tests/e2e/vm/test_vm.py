"""An ordinary user on a machine with systemd, and the doctor there: one boot of QEMU for all."""

from integration.conftest import need
from machines.vm import PYTHON, run_in_vm

FILES = ("tests/e2e/vm/in_session.py", "tests/e2e/vm/in_doctor.py")


def test_an_ordinary_user_on_systemd() -> None:
    """Kernel limits without any rights, through the user manager."""
    need("qemu-system-x86_64", "qemu-system-x86")
    need("mmdebstrap", "mmdebstrap")
    need("genext2fs", "genext2fs")
    ended = run_in_vm([PYTHON, "-m", "pytest", *FILES, "--durations=0", "-rP"], limit_s=420)
    print(ended.out, ended.err, f"{ended.wall_s:.0f} s with the boot", sep="\n")
    assert ended.code == 0
