"""How many files this process may have open (`ulimit -n`)."""

from ramherd.core.errors import LimitTooLow

RAISE = "raise the limit: ulimit -n 4096"


def check_file_limit(limit: int, least: int) -> None:
    """Better now, in one line, than in the middle of something. Below zero there is no limit."""
    if 0 <= limit < least:
        raise LimitTooLow(
            f"only {limit} files may be open at a time, and {least} are needed",
            hint=RAISE,
        )


def explain_file_limit(most_runs: int, limit: int) -> str:
    runs = "1 run" if most_runs == 1 else f"{most_runs} runs"
    return f"at most {runs} at a time, because only {limit} files may be open\n  hint: {RAISE}"
