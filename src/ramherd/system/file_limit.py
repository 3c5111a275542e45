"""How many files this process may have open (`ulimit -n`)."""

from ramherd.core.errors import LimitTooLow


def check_file_limit(limit: int, least: int) -> None:
    """Better now, in one line, than in the middle of something. Below zero there is no limit."""
    if 0 <= limit < least:
        raise LimitTooLow(
            f"only {limit} files may be open at a time, and {least} are needed",
            hint="raise the limit: ulimit -n 4096",
        )
