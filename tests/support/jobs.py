"""Jobs from files and lines, read and checked."""

from collections.abc import Sequence

from ramherd.core.model import Job
from ramherd.jobs.reader import Defaults, make_jobs, read_tables, tables_from_lines
from support.make import HERD


def read_job_file(
    path: str, stdin: bytes | None = None, defaults: Defaults | None = None
) -> list[Job]:
    read = read_tables(path, stdin)
    return make_jobs(read.tables, read.source, HERD, defaults or Defaults())


def jobs_from_lines(argv: Sequence[str], data: bytes) -> list[Job]:
    read = tables_from_lines(argv, data)
    return make_jobs(read.tables, read.source, HERD, Defaults())
