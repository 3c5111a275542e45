"""`@record`: a frozen class with slots, like `@dataclass(frozen=True, slots=True)`.

Importing `dataclasses` takes 10 ms of CPU (it imports `inspect`), and each frozen class 0.6 ms.
`ramherd exec` would pay that at every start for about 25 nouns. A record class takes 0.03 ms:
nothing is compiled. The functions of `dataclasses` (`replace`, `fields`, `asdict`) work on records.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


class Factory:
    """A default value that is created for each instance."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def factory(*, default_factory: Callable[[], Any]) -> Any:
    return Factory(default_factory)


@dataclass_transform(frozen_default=True, field_specifiers=(factory,))
def record(cls: type[T]) -> type[T]:
    names = tuple(cls.__dict__.get("__annotations__", {}))  # noqa: RUF063 - `inspect` is the cost
    body = {key: value for key, value in cls.__dict__.items() if key not in names}
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    for made in ("__dict__", "__weakref__"):
        body.pop(made, None)
    body.setdefault("__init__", _init)
    body |= {
        "__slots__": names, "__match_args__": names, "__record_defaults__": defaults,
        "__record_values__": _values_of(names),
        "__dataclass_fields__": _Fields(), "__setattr__": _refuse, "__delattr__": _refuse,
        "__eq__": _equals, "__hash__": _hash, "__getstate__": _values, "__setstate__": _restore,
    }  # fmt: skip
    body.setdefault("__repr__", _repr)
    made_class: Any = type(cls.__name__, cls.__bases__, body)
    made_class.__qualname__ = cls.__qualname__
    # Setting a slot through its descriptor takes half as long as through its name.
    made_class.__record_setters__ = tuple((n, made_class.__dict__[n].__set__) for n in names)
    return made_class  # type: ignore[no-any-return]


def _replace(value: T, **changes: Any) -> T:
    names: tuple[str, ...] = value.__slots__  # type: ignore[attr-defined]
    return type(value)(**{name: getattr(value, name) for name in names} | changes)


if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: PLC0414 - mypy checks the names of fields
else:
    replace = _replace


def _init(self: Any, *args: Any, **given: Any) -> None:
    cls = type(self)
    setters, taken = cls.__record_setters__, 0
    if len(args) > len(setters):
        _explain(cls, args, given)
    for (_name, set_field), value in zip(setters, args, strict=False):
        set_field(self, value)
    for name, set_field in setters[len(args) :]:
        if name in given:
            set_field(self, given[name])
            taken += 1
        elif name in cls.__record_defaults__:
            value = cls.__record_defaults__[name]
            set_field(self, value.make() if type(value) is Factory else value)
        else:
            _explain(cls, args, given)
    if taken != len(given):
        _explain(cls, args, given)


def _explain(cls: Any, args: tuple[Any, ...], given: dict[str, Any]) -> NoReturn:
    names = cls.__slots__
    if len(args) > len(names) or not given.keys().isdisjoint(names[: len(args)]):
        raise TypeError(f"{cls.__name__} has {len(names)} fields: one is given twice")
    for name in given:
        if name not in names:
            raise TypeError(f"{cls.__name__} has no field {name!r}")
    needed = [name for name in names[len(args) :] if name not in cls.__record_defaults__]
    raise TypeError(f"{cls.__name__} needs {next(name for name in needed if name not in given)!r}")


def _values_of(names: tuple[str, ...]) -> Any:
    """A function that returns all values of a record: attrgetter loops in C."""
    if len(names) > 1:
        return staticmethod(attrgetter(*names))
    return staticmethod(lambda value: tuple(getattr(value, name) for name in names))


class _Fields:
    """The fields that `dataclasses` reads, created on first use."""

    def __get__(self, _value: Any, cls: type[Any]) -> dict[str, Any]:
        import dataclasses  # noqa: PLC0415 - the caller has imported it

        fields = {}
        for name in cls.__slots__:
            default = cls.__record_defaults__.get(name, dataclasses.MISSING)
            if isinstance(default, Factory):
                made = dataclasses.field(default_factory=default.make)
            else:
                made = dataclasses.field(default=default)
            made.name, made.type = name, cls.__annotations__[name]
            made._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
            made.kw_only = False
            fields[name] = made
        cls.__dataclass_fields__ = fields
        return fields


def _refuse(self: Any, name: str, *_value: Any) -> None:
    from dataclasses import FrozenInstanceError  # noqa: PLC0415 - only for a mistake

    raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")


def _values(self: Any) -> Any:
    return self.__record_values__(self)


def _restore(self: Any, values: tuple[Any, ...]) -> None:
    for name, value in zip(self.__slots__, values, strict=True):
        object.__setattr__(self, name, value)


def _equals(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    values = self.__record_values__
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(self.__record_values__(self))


def _repr(self: Any) -> str:
    texts = (f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__qualname__}({', '.join(texts)})"
