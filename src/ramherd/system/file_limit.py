"""The number of files that this process may have open (`ulimit -n`)."""

from ramherd.core.errors import LimitTooLow

RAISE = "raise the limit: ulimit -n 4096"


def check_file_limit(limit: int, least: int) -> None:
    """Fails early, in one line, instead of in the middle of a run. A negative limit is none."""
    if 0 <= limit < least:
        raise LimitTooLow(
            f"only {limit} files may be open at a time, and {least} are needed",
            hint=RAISE,
        )


def explain_file_limit(most_runs: int, limit: int) -> str:
    runs = "1 run" if most_runs == 1 else f"{most_runs} runs"
    return f"at most {runs} at a time, because only {limit} files may be open\n  hint: {RAISE}"
