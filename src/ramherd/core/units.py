"""Bytes and seconds to text and back. Text lives in files, flags and screens only."""

import re

from ramherd.core.errors import UsageError

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

_SIZE_UNITS = {
    "": 1,
    "b": 1,
    "k": KIB, "kib": KIB, "kb": 10**3,
    "m": MIB, "mib": MIB, "mb": 10**6,
    "g": GIB, "gib": GIB, "gb": 10**9,
    "t": TIB, "tib": TIB, "tb": 10**12,
}  # fmt: skip
_TIME_UNITS = {"": 1, "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
# Some quintillions at most: longer numbers are no memory and no time.
_NUMBER = re.compile(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([a-zA-Z]{0,9})\s*")
_SHOWN = 40


def parse_size(text: str | int) -> int:
    """`2GiB`, `512M`, `1.5 GB` or a plain number of bytes. A lone K, M, G, T is binary."""
    number, unit = _split(text, "size", "512MiB or 2GiB")
    if unit not in _SIZE_UNITS:
        raise UsageError(
            f"size {shown(text)} has an unknown unit", hint="use KiB, MiB, GiB, KB, MB or GB"
        )
    size = int(number * _SIZE_UNITS[unit])
    if size <= 0:
        raise UsageError(f"size {shown(text)} is not above zero", hint="write it like 512MiB")
    # SQLite keeps 64 bits.
    if size >= 1 << 63:
        raise UsageError(f"size {shown(text)} is more than any machine has")
    return size


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
        raise UsageError(f"{what} {shown(value)} does not parse", hint=f"write it like {example}")
    return float(match[1]), match[2].lower()


def _number_text(value: object) -> str:
    """Numbers as they stand in TOML and JSON; anything else but text is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.9f}"


def shown(value: object) -> str:
    """A value of the user's in a message of one line: quoted, and not longer than a line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number or a nesting without end
        return f"of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def format_size(size: float) -> str:
    """Three significant figures at most: `512 MiB`, `1.5 GiB`."""
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
