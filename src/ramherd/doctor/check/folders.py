"""Transcripts and output of agents, the biggest first."""

from collections.abc import Iterator, Sequence

from ramherd.core.units import GIB, MIB, format_size
from ramherd.doctor.facts import Folder
from ramherd.doctor.findings import Finding, Severity, quoted

# Users reported 297 GB, 310 GB and 1.2 TB.
LARGE_BYTES = 10 * GIB
LARGE_FILE_BYTES = 2 * GIB
WORTH_SAYING_BYTES = GIB
IN_RAM_BYTES = 256 * MIB
FULL_BYTES = GIB


def check_folders(folders: Sequence[Folder]) -> Iterator[Finding]:
    if not folders:
        yield Finding("transcripts", Severity.OK, "no transcripts or output of agents")
    for folder in sorted(folders, key=lambda folder: -folder.size_bytes):
        yield check_folder(folder)


def check_folder(folder: Folder) -> Finding:
    least = "" if folder.is_whole else "at least "
    files = "1 file" if folder.files == 1 else f"{folder.files} files"
    what = f"{folder.path} holds {least}{format_size(folder.size_bytes)} in {files}"
    if folder.largest_bytes > WORTH_SAYING_BYTES:
        what += f", the largest {format_size(folder.largest_bytes)}: {folder.largest}"
    level, why = judge(folder)
    numbers = {
        "size_bytes": folder.size_bytes, "files": folder.files,
        "largest_bytes": folder.largest_bytes, "disk_free_bytes": folder.disk_free_bytes,
    }  # fmt: skip
    command = "" if level is Severity.OK else clear(folder)
    return Finding("transcripts", level, what, why, command, numbers=numbers)


def judge(folder: Folder) -> tuple[Severity, str]:
    free = format_size(folder.disk_free_bytes)
    if folder.disk_free_bytes < FULL_BYTES and folder.size_bytes > folder.disk_free_bytes:
        return Severity.PROBLEM, f"the disk has {free} left: agents stop when it is full"
    if folder.on_tmpfs and folder.size_bytes > IN_RAM_BYTES:
        return Severity.WARNING, "it lies on a tmpfs: all of it is RAM"
    if folder.size_bytes > LARGE_BYTES or folder.largest_bytes > LARGE_FILE_BYTES:
        return Severity.WARNING, f"nothing limits it; the disk has {free} left"
    if folder.size_bytes > WORTH_SAYING_BYTES:
        return Severity.HINT, f"it only grows; the disk has {free} left"
    return Severity.OK, ""


def clear(folder: Folder) -> str:
    """By age, after a look. Claude Code removes old transcripts by itself, if told."""
    command = f"find {quoted(folder.path)} -type f -mtime +14 -size +1M -ls   # then -delete"
    if folder.path.endswith("/projects"):
        command += '; or "cleanupPeriodDays": 14 in settings.json'
    return command
