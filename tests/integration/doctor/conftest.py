"""The machine that the doctor's unit tests have, and real programs on it."""

from unit.doctor.conftest import root

__all__ = ["root"]
