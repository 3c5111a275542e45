"""Bytes and seconds to text and back. Text lives in files, flags and screens only."""

import re

from ramherd.errors import UsageError

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
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_size(text: str | int) -> int:
    """`2GiB`, `512M`, `1.5 GB` or a plain number of bytes. A lone K, M, G, T is binary."""
    if isinstance(text, int) and not isinstance(text, bool):
        text = str(text)
    number, unit = _split(text, "size", "512MiB or 2GiB")
    if unit not in _SIZE_UNITS:
        raise UsageError(
            f"size {text!r} has an unknown unit", hint="use KiB, MiB, GiB, KB, MB or GB"
        )
    size = int(number * _SIZE_UNITS[unit])
    if size <= 0:
        raise UsageError(f"size {text!r} is not above zero", hint="write it like 512MiB or 2GiB")
    return size


def parse_duration(text: str | float) -> float:
    """`90s`, `5m`, `1.5h` or a plain number of seconds."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = str(text)
    number, unit = _split(text, "duration", "90s or 5m")
    if unit not in _TIME_UNITS:
        raise UsageError(f"duration {text!r} has an unknown unit", hint="use ms, s, m, h or d")
    if number <= 0:
        raise UsageError(f"duration {text!r} is not above zero", hint="write it like 90s or 5m")
    return number * _TIME_UNITS[unit]


def _split(text: object, what: str, example: str) -> tuple[float, str]:
    match = _NUMBER.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise UsageError(f"{what} {text!r} does not parse", hint=f"write it like {example}")
    return float(match[1]), match[2].lower()


def format_size(size: float) -> str:
    """Three significant figures at most: `512 MiB`, `1.5 GiB`."""
    sign, size = ("-", -size) if size < 0 else ("", size)
    # From 1000 of a unit the next one reads better: 0.98 GiB, not 1000 MiB.
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= 1000 * unit / 1024:
            return f"{sign}{_short(size / unit)} {name}"
    return f"{sign}{size:.0f} B"


def _short(value: float) -> str:
    text = f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
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
