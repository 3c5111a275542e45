"""Transcripts and output of agents, largest first; ramherd's own directories, store and logs."""

from collections.abc import Iterator, Sequence
from shlex import quote

from ramherd.core.state_disk import DiskState
from ramherd.core.units import GIB, MIB, format_size
from ramherd.decide.disk_space import ROOM_FACTOR
from ramherd.doctor.facts import Folder, OwnDirectory, State
from ramherd.doctor.findings import Finding, SetMode, Severity

# Users reported 297 GB, 310 GB and 1.2 TB.
LARGE_BYTES = 10 * GIB
LARGE_FILE_BYTES = 2 * GIB
WORTH_SAYING_BYTES = GIB
IN_RAM_BYTES = 256 * MIB
FULL_BYTES = GIB
# SQLite's journal and flock need all users of a file to be on one kernel.
NETWORK = {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs", "afs", "vboxsf"}
STATE_FULL_BYTES, STATE_LOW_BYTES = 64 * MIB, GIB


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
    level, why = judge_folder(folder)
    numbers = {
        "size_bytes": folder.size_bytes, "files": folder.files,
        "largest_bytes": folder.largest_bytes, "disk_free_bytes": folder.disk_free_bytes,
    }  # fmt: skip
    command = "" if level is Severity.OK else clear(folder)
    return Finding("transcripts", level, what, why, command, numbers=numbers)


def judge_folder(folder: Folder) -> tuple[Severity, str]:
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
    """By age, after a look. Claude Code can remove old transcripts by itself."""
    command = f"find {quote(folder.path)} -type f -mtime +14 -size +1M -ls   # then -delete"
    if folder.path.endswith("/projects"):
        command += '; or "cleanupPeriodDays": 14 in settings.json'
    return command


def check_state(state: State) -> Iterator[Finding]:
    for directory in state.directories:
        yield check_directory(directory)
    if state.store_error:
        store = quote(f"{state.directories[0].path}/ramherd.db")
        yield Finding(
            "store", Severity.PROBLEM, f"{store} cannot be read: {state.store_error}",
            "recorded jobs cannot be listed",
            "ramherd up   # or ramherd run: sets it aside, and keeps what can be read of it",
        )  # fmt: skip
    else:
        yield Finding("store", Severity.OK, "the store can be read, or is not there yet")
    yield check_logs(state)
    if state.disk is not None and state.disk.ballast_bytes:
        yield check_ballast(state.disk)


def check_directory(directory: OwnDirectory) -> Finding:
    free = "" if directory.free_bytes is None else f", {format_size(directory.free_bytes)} free"
    name = "state" if directory.keeps else "runtime"
    what = f"{name} directory {directory.path}{'' if directory.exists else ' (not made yet)'}{free}"
    level, why, command = judge_directory(directory)
    fix = None
    if directory.exists and directory.is_ours and (directory.mode & 0o077 or is_closed(directory)):
        fix = SetMode(directory.path, 0o700, directory.mode)
    return Finding(name, level, what, why, command, fix)


def judge_directory(directory: OwnDirectory) -> tuple[Severity, str, str]:
    elsewhere = "export XDG_STATE_HOME=/a/directory/of/yours"
    if why := unusable(directory):
        # No other runtime directory: two ledgers would promise the same memory twice.
        command = elsewhere if directory.keeps else f"ls -ld {quote(directory.path)}"
        if is_closed(directory):
            command = f"chmod 700 {quote(directory.path)}"
        return Severity.PROBLEM, why, command
    free = directory.free_bytes
    if free is not None and free < STATE_FULL_BYTES:
        return Severity.PROBLEM, "no room for the store and for logs", "ramherd prune --keep 0"
    if directory.exists and directory.mode & 0o077:
        why = f"mode {directory.mode:04o}: others can read what agents print"
        return Severity.WARNING, why, f"chmod 700 {quote(directory.path)}"
    if directory.keeps and free is not None and free < STATE_LOW_BYTES:
        return Severity.WARNING, "logs of a herd may fill it", "ramherd prune --keep 256MiB"
    if directory.keeps and directory.file_system == "tmpfs":
        return Severity.HINT, "on a tmpfs logs are RAM, and gone after a boot", elsewhere
    return Severity.OK, "", ""


def is_closed(directory: OwnDirectory) -> bool:
    """Whether its own user lacks a permission on it."""
    return directory.exists and directory.is_ours and directory.mode & 0o700 != 0o700


def unusable(directory: OwnDirectory) -> str:
    if directory.exists and not directory.is_ours:
        return "it is no directory of yours: no herd starts"
    if is_closed(directory):
        return f"mode {directory.mode:04o}: you cannot use it yourself, and no herd starts"
    if not directory.is_writable:
        return "it cannot be written to: no herd starts"
    if directory.file_system in NETWORK:
        kind = directory.file_system
        return f"{kind} is a network file system: locks and the store's journal fail"
    return ""


def check_logs(state: State) -> Finding:
    what = (
        f"logs of runs hold {format_size(state.logs_bytes)} of {format_size(state.logs_keep_bytes)}"
    )
    numbers = {"size_bytes": state.logs_bytes, "keep_bytes": state.logs_keep_bytes}
    if state.logs_bytes > state.logs_keep_bytes:
        why = "more than log_total: the next run that prints removes the oldest"
        return Finding("logs", Severity.HINT, what, why, "ramherd prune", numbers=numbers)
    return Finding("logs", Severity.OK, what, numbers=numbers)


def check_ballast(disk: DiskState) -> Finding:
    numbers = {"size_bytes": disk.ballast_bytes, "held_bytes": disk.held_bytes}
    if not disk.is_full:
        what = f"{format_size(disk.held_bytes)} is reserved for the store when the disk is full"
        return Finding("ballast", Severity.OK, what, numbers=numbers)
    need = format_size(ROOM_FACTOR * disk.ballast_bytes)
    return Finding(
        "ballast", Severity.PROBLEM,
        f"the disk was full: released the {format_size(disk.ballast_bytes)} reserved for the store",
        f"{format_size(disk.free_bytes)} is free, and no job starts below {need}",
        "ramherd prune --keep 0", numbers=numbers,
    )  # fmt: skip
