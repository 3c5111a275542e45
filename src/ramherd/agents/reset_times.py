"""Parses the time at which a usage limit resets from the message to the user.

    You've hit your session limit · resets 8:45am (UTC)
    You've hit your weekly limit · resets Nov 20, 9am (Europe/Berlin)
    You've hit your usage limit ... try again in 3 hours 12 minutes.
    You've hit your usage limit ... try again at Nov 20th, 2026 8:45 PM.
    Claude AI usage limit reached|1760000000

A time without a date is in the future, unless it has just passed: a text may be read late.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo

DAY_S = 86_400.0
UNITS = {"d": DAY_S, "h": 3600.0, "m": 60.0, "s": 1.0}
# A time of day up to this long ago has just passed; an earlier one is tomorrow's.
JUST_PASSED = timedelta(hours=1)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# No limit of any vendor lasts longer than a month.
LONGEST_S = 32 * DAY_S

EPOCH = re.compile(r"\|\s*(\d{10})(?:\d{3})?\b")
ISO = re.compile(r"\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)\s*(Z|[+-]\d\d:?\d\d)?")
AMOUNT = r"\d+(?:\.\d+)?\s*(?:days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|ms|d|h|m|s)\b"
# "1h30m" has no separator between its parts.
COMPACT = r"(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+(?:\.\d+)?s)?"
IN = re.compile(
    rf"\b(?:in|after)\s+(?:about\s+)?((?:{AMOUNT}\s*,?\s*(?:and\s+)?)+|(?=\d){COMPACT}\b)",
    re.IGNORECASE,
)
PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|d|h|m|s)", re.IGNORECASE)
AT = re.compile(
    r"\b(?:resets?|reset at|until|again|at|on)\s+(?:at\s+|on\s+)?"
    rf"(?:(?P<month>{'|'.join(MONTHS)})[a-z]*\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    r"(?:,?\s+(?P<year>\d{4}))?,?\s+(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>am|pm)?\b"
    r"(?:\s*\((?P<zone>[A-Za-z_]+(?:[/+-][\w+/-]+)*)\)|\s+(?P<utc>UTC|GMT)\b)?",
    re.IGNORECASE,
)


def parse_reset_s(text: str, now_s: float, zone: tzinfo | None = None) -> float | None:
    """Epoch seconds; None if the text has no plausible time. `zone` is for times without a zone
    (None: the zone of this machine).
    """
    for find in (find_epoch, find_iso, find_relative, find_clock):
        at_s = find(text, now_s, zone)
        if at_s is not None and abs(at_s - now_s) <= LONGEST_S:
            return at_s
    return None


def find_epoch(text: str, _now_s: float, _zone: tzinfo | None) -> float | None:
    found = EPOCH.search(text)
    return float(found[1]) if found else None


def find_iso(text: str, _now_s: float, zone: tzinfo | None) -> float | None:
    found = ISO.search(text)
    if not found:
        return None
    try:
        at = datetime.fromisoformat(found[1] + (found[2] or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    return to_epoch(at, zone) if at.tzinfo is None else at.timestamp()


def find_relative(text: str, now_s: float, _zone: tzinfo | None) -> float | None:
    found = IN.search(text)
    parts = PART.findall(found[1]) if found else []
    if not parts:
        return None
    return now_s + sum(
        float(number) / 1000 if unit.lower() == "ms" else float(number) * UNITS[unit.lower()]
        for number, unit in parts
    )


def find_clock(text: str, now_s: float, zone: tzinfo | None) -> float | None:
    for found in AT.finditer(text):
        # A bare number is not a time: "try again at 5", "reset on 20".
        if found["half"] or found["minute"]:
            named = find_zone(found["zone"] or found["utc"])
            return choose_time(found, now_s, named or zone)
    return None


def choose_time(found: "re.Match[str]", now_s: float, zone: tzinfo | None) -> float | None:
    now = datetime.fromtimestamp(now_s, zone)
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
    try:
        at = now.replace(hour=hour, minute=minute, second=0, microsecond=0, tzinfo=None, fold=0)
        if found["month"]:
            month = MONTHS.index(found["month"].lower()[:3]) + 1
            at = at.replace(year=int(found["year"] or now.year), month=month, day=int(found["day"]))
    except ValueError:
        return None
    if found["month"]:
        is_last_year = not found["year"] and to_epoch(at, zone) < now_s - LONGEST_S
        return to_epoch(at.replace(year=at.year + 1) if is_last_year else at, zone)
    return next_of_day(at, now_s, zone)


def next_of_day(at: datetime, now_s: float, zone: tzinfo | None) -> float:
    """The first of yesterday's, today's and tomorrow's time that has not long passed. In the hour
    that a clock change repeats, the second time counts once the first has passed.
    """
    days = [at + timedelta(days=days) for days in (-1, 0, 1)]
    times = [to_epoch(day.replace(fold=fold), zone) for day in days for fold in (0, 1)]
    ahead = [at_s for at_s in times if at_s >= now_s]
    passed = [at_s for at_s in times if now_s - JUST_PASSED.total_seconds() < at_s < now_s]
    soon = [at_s for at_s in ahead if at_s - now_s < JUST_PASSED.total_seconds()]
    if passed and not soon:
        return max(passed)
    return min(ahead)


def to_epoch(at: datetime, zone: tzinfo | None) -> float:
    """Converts a naive time in the zone, or in the zone of this machine."""
    return (at if zone is None else at.replace(tzinfo=zone)).timestamp()


def find_zone(name: str | None) -> tzinfo | None:
    """None for a zone that is not in this machine's database."""
    if not name:
        return None
    if name.upper() in ("UTC", "GMT", "Z"):
        return UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - few texts name a zone

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return None
