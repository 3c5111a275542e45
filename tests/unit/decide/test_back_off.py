"""How long to wait before something that failed is tried again."""

from ramherd.decide.back_off import back_off_s


def test_each_wait_is_twice_as_long_up_to_a_limit() -> None:
    """The limit holds for any number of failures."""
    assert [back_off_s(times, 0.5, 15.0) for times in (1, 2, 3, 5, 6)] == [0.5, 1.0, 2.0, 8.0, 15.0]
    assert back_off_s(33, 1.0, 1e12) == back_off_s(34, 1.0, 1e12) == 2.0**32
