"""Conversion of bytes and seconds to text and back. Only files, flags and screens use the text."""

import re

from ramherd.core.errors import UsageError

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

_SIZE_UNITS = {
    "b": 1,
    "k": KIB, "kib": KIB, "kb": 10**3,
    "m": MIB, "mib": MIB, "mb": 10**6,
    "g": GIB, "gib": GIB, "gb": 10**9,
    "t": TIB, "tib": TIB, "tb": 10**12,
}  # fmt: skip
_TIME_UNITS = {"": 1, "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
# At most some quintillions: longer numbers are neither sizes nor times. Not \d, which matches the
# digits of every script.
_NUMBER = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([a-zA-Z]{0,9})\s*")
_SHOWN = 40
_EXAMPLE = "write it like 512MiB"
LEAST_MEMORY_BYTES = MIB
# SQLite stores 64 bits.
_MOST_BYTES = (1 << 63) - 1
# In hints, a number below this without a unit is read as GiB: more than many machines have.
_TOO_MANY_GIB = 32


def parse_size(text: object) -> int:
    """`2GiB`, `512M` or `1.5 GB`; K, M, G and T alone are binary. A number without a unit is
    refused: some people mean bytes by it, others MiB.
    """
    number, unit = _split(text, "size", "512MiB or 2GiB")
    if not unit and number > 0:
        raise UsageError(f"size {shown(text)} has no unit", hint=_ask_for_unit(text, number))
    if unit and unit not in _SIZE_UNITS:
        raise UsageError(
            f"size {shown(text)} has an unknown unit", hint="use KiB, MiB, GiB, KB, MB or GB"
        )
    size = int(number * _SIZE_UNITS.get(unit, 1))
    if size <= 0:
        raise UsageError(f"size {shown(text)} is not above zero", hint=_EXAMPLE)
    if size > _MOST_BYTES:
        raise UsageError(f"size {shown(text)} is more than any machine has", hint=_EXAMPLE)
    return size


def parse_memory(value: object) -> int:
    """A memory size. An integer is a number of bytes: programs pass it by the API and Python."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _check_bytes(value)
    size = parse_size(value)
    if size < LEAST_MEMORY_BYTES:
        raise UsageError(f"size {shown(value)} is below 1 MiB", hint=_EXAMPLE)
    return size


def _check_bytes(size: int) -> int:
    if size <= 0:
        raise UsageError(f"size {shown(size)} is not above zero", hint=_EXAMPLE)
    if size < LEAST_MEMORY_BYTES:
        raise UsageError(f"size {size} is below 1 MiB", hint=_ask_for_unit(size, size))
    if size > _MOST_BYTES:
        raise UsageError(f"size {shown(size)} is more than any machine has", hint=_EXAMPLE)
    return size


def _ask_for_unit(written: object, number: float) -> str:
    return f"{str(written).strip()} bytes? say {_likely_size(number)}"


def _likely_size(number: float) -> str:
    """The likely meaning of a number without a unit: few GiB, some MiB, or many bytes."""
    if number < LEAST_MEMORY_BYTES:
        return f"{number:.9g}{'GiB' if number < _TOO_MANY_GIB else 'MiB'}"
    if number % GIB == 0:
        return f"{number // GIB:.0f}GiB"
    return f"{number / MIB:.0f}MiB"


def parse_duration(text: str | float) -> float:
    """`90s`, `5m`, `1.5h` or a plain number of seconds."""
    number, unit = _split(text, "duration", "90s or 5m")
    if unit not in _TIME_UNITS:
        raise UsageError(f"duration {shown(text)} has an unknown unit", hint="use ms, s, m, h or d")
    if number <= 0:
        raise UsageError(f"duration {shown(text)} is not above zero", hint="write it like 90s")
    return number * _TIME_UNITS[unit]


def _split(value: object, what: str, example: str) -> tuple[float, str]:
    # Half a byte is a mistake; half a second is not.
    text = "" if what == "size" and isinstance(value, float) else _number_text(value)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UsageError(f"{shown(value)} is not a {what}", hint=f"write it like {example}")
    return float(match[1]), match[2].lower()


def _number_text(value: object) -> str:
    """Numbers as written in TOML and JSON; "" for any other value that is not text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.9f}"


def shown(value: object) -> str:
    """A user's value in a one-line message: quoted, and cut to the length of a line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a huge number, or infinite nesting
        return f"of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def format_size(size: float) -> str:
    """At most three significant figures: `512 MiB`, `1.5 GiB`."""
    if size < 0:
        return f"-{format_size(-size)}"
    # From 999.5 of a unit the next one reads better: 0.98 GiB, not 1000 MiB.
    for unit, smaller, name in (
        (TIB, GIB, "TiB"),
        (GIB, MIB, "GiB"),
        (MIB, KIB, "MiB"),
        (KIB, 1, "KiB"),
    ):
        if size >= 999.5 * smaller:
            return f"{_short(size / unit)} {name}"
    return f"{size:.0f} B"


def _short(value: float) -> str:
    text = f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 job`, `2 jobs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"


def format_duration(seconds: float) -> str:
    """`0.4s`, `42s`, `3m07s`, `2h05m`."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02}m"
