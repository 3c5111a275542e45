"""`@record` makes what `@dataclass(frozen=True, slots=True)` makes."""

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from ramherd.core.record import factory, record, replace


@record
class Point:
    x: int
    y: int = 2
    tags: dict[str, int] = factory(default_factory=dict)

    @property
    def total(self) -> int:
        return self.x + self.y


@record
class Other:
    x: int
    y: int = 2


def test_values_have_defaults_properties_and_slots() -> None:
    """By position and by name; a default that is made is made for each value."""
    point = Point(1, tags={"a": 1})
    assert (point.x, point.y, point.tags, point.total) == (1, 2, {"a": 1}, 3)
    assert Point(1).tags is not Point(1).tags
    assert repr(Point(1)) == "Point(x=1, y=2, tags={})"
    assert not hasattr(point, "__dict__")


def test_values_are_compared_with_their_own_kind() -> None:
    """Equal fields of two classes are two things."""
    assert Point(1) == Point(x=1, y=2)
    assert Point(1) != Point(2)
    assert hash(Other(1)) == hash(Other(1))
    first: object = Other(1)
    assert first != (1, 2)


@pytest.mark.parametrize(
    ("args", "given"), [((), {}), ((1,), {"x": 1}), ((1,), {"z": 1}), ((1, 2, {}, 4), {})]
)
def test_a_wrong_call_is_an_error(args: tuple[Any, ...], given: dict[str, Any]) -> None:
    """A field is missing, given twice, not known, or too many are given."""
    make: Any = Point
    with pytest.raises(TypeError):
        make(*args, **given)


def test_values_do_not_change() -> None:
    """As a frozen dataclass says it."""
    point: Any = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x


def test_the_functions_of_dataclasses_work() -> None:
    """`replace`, ours and theirs, `fields` and `asdict`; values are copied and pickled."""
    assert replace(Point(1), y=5) == dataclasses.replace(Point(1), y=5) == Point(1, 5)
    assert [field.name for field in dataclasses.fields(Point)] == ["x", "y", "tags"]
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 2, "tags": {}}
    assert copy.deepcopy(Point(1)) == pickle.loads(pickle.dumps(Point(1))) == Point(1)
