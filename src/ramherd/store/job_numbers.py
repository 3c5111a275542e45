"""The numbers of jobs: small integers, unique in a store, which users type instead of ids.

Jobs are numbered in the order in which they are submitted. A number is never used twice, even after
its job was pruned: an old hint never means another job.
"""

from ramherd.store.protocol import Store
from ramherd.store.sql import records as sql
from ramherd.store.sql.service import SET_FLAG

# The flag that holds the highest number.
LAST_NUMBER = "last_number"
# SQLite integers have 64 bits.
MOST_DIGITS = 18


def number_jobs(store: Store) -> int:
    """Numbers the jobs that have no number. Returns the highest number ever used."""
    last = read_last_number(store)
    return last + store.write(sql.NUMBER_JOBS, (last,))


def read_last_number(store: Store) -> int:
    ((last,),) = store.read(sql.LAST_NUMBER)
    return int(last)


def record_last_number(store: Store) -> None:
    """Jobs were added: their numbers stay taken after the jobs are pruned."""
    store.write(SET_FLAG, (LAST_NUMBER, str(read_last_number(store))))


def read_numbers(store: Store, herd: str) -> dict[str, int]:
    """The numbers of the jobs of a herd, by id."""
    return dict(store.read(sql.NUMBERS, (herd,)))


def find_numbered_job(store: Store, text: str) -> str | None:
    """The id of the job with this number; None if the text is not a number, or no job has it."""
    if not (text.isascii() and text.isdigit()) or len(text) > MOST_DIGITS:
        return None
    rows = store.read(sql.FIND_JOB_BY_NUMBER, (int(text),))
    return rows[0][0] if rows else None
