"""The ladder: TERM, the grace, KILL."""

import signal

import pytest

from ramherd.system import termination
from ramherd.system.termination import kill_all, terminate, wait_until


class Crowd:
    """Ends at a signal, or at the last of so many kills; `log` is what was done to it."""

    def __init__(self, ends_at: int = 0, kills: int = 1) -> None:
        self.log: list[str] = []
        self._ends_at, self._kills = ends_at, kills
        self._is_gone = False

    def send(self, number: int) -> None:
        self.log.append(signal.Signals(number).name)
        self._is_gone = self._is_gone or number == self._ends_at

    def kill(self) -> None:
        self.log.append("kill")
        self._kills -= 1
        self._is_gone = self._kills == 0

    def wait(self, for_s: float) -> bool:
        self.log.append(f"wait {for_s}")
        return self._is_gone


def end(crowd: Crowd, *, kill_s: float = 10.0) -> bool:
    return terminate(crowd.send, crowd.kill, crowd.wait, 3.0, kill_s=kill_s)


def test_what_obeys_term_is_not_killed() -> None:
    """CONT goes with TERM: a stopped process would not receive it."""
    crowd = Crowd(ends_at=signal.SIGTERM)

    assert end(crowd)
    assert crowd.log == ["SIGTERM", "SIGCONT", "wait 3.0"]


def test_what_ignores_term_is_killed_after_the_grace() -> None:
    """TERM, the grace, then KILL."""
    crowd = Crowd()

    assert end(crowd)
    assert crowd.log == ["SIGTERM", "SIGCONT", "wait 3.0", "kill", f"wait {termination.AGAIN_S}"]


def test_kill_is_repeated_until_nothing_is_left() -> None:
    """What is killed may have forked a moment before."""
    crowd = Crowd(kills=3)

    assert end(crowd)
    assert crowd.log.count("kill") == 3


def test_what_even_kill_does_not_end_is_given_up() -> None:
    """Asleep in the kernel, or root's: nobody waits for it for ever."""
    crowd = Crowd(kills=10**9)

    assert not end(crowd, kill_s=0.0)
    assert not kill_all(crowd.kill, crowd.wait, 0.0)
    assert crowd.log.count("kill") == 2


@pytest.mark.parametrize(("asks", "expected"), [(1, True), (3, True)])
def test_what_can_only_be_asked_is_asked_again(asks: int, expected: bool) -> None:
    """Until it is done."""
    answers = iter([False] * (asks - 1) + [True])

    assert wait_until(lambda: next(answers), 10.0, every_s=0.0) is expected


def test_it_is_asked_once_when_there_is_no_time() -> None:
    """No time is a look, not a wait."""
    answers = iter([False])

    assert not wait_until(lambda: next(answers), 0.0)
