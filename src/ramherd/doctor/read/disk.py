"""Files that agents have written (transcripts and output, measured for a short time), and ramherd's
own directories with its store. Reading creates nothing.
"""

import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from ramherd.config.paths import find_dir_problem
from ramherd.doctor.facts import Folder, OwnDirectory, State
from ramherd.doctor.read.host import Host
from ramherd.measure.disk_usage import read_disk
from ramherd.store.sqlite import read_store_error
from ramherd.system.procfs import read_mounts

AT_HOME = (
    ".claude/projects", ".claude/file-history", ".claude/debug", ".claude/shell-snapshots",
    ".claude/todos", ".codex/sessions", ".codex/log", ".gemini/tmp", ".qwen/tmp",
    ".local/share/opencode", ".cursor/chats",
)  # fmt: skip
# The directory of Claude Code for the output of background commands.
OUTPUT = "claude-{uid}"
# For all of them: 50,000 files take about 0.1 s when their names are cached.
ALL_S = 0.5
# More files take too long to count; then the sum is partial.
MOST_FILES = 50_000


def read_folders(host: Host, clock: Callable[[], float] = time.monotonic) -> list[Folder]:
    deadline = clock() + ALL_S
    paths = [host.home / name for name in AT_HOME]
    if own := host.env.get("CLAUDE_CONFIG_DIR"):
        paths.append(Path(own) / "projects")
    for temporary in (host.root / "tmp", host.env.get("TMPDIR")):
        if temporary:
            paths.append(Path(temporary) / OUTPUT.format(uid=host.uid))
    real = dict.fromkeys(path for path in paths if path.is_dir())
    found = [read_folder(path, host, lambda: clock() > deadline) for path in real]
    return sorted(found, key=lambda folder: -folder.size_bytes)


def read_folder(path: Path, host: Host, is_late: Callable[[], bool]) -> Folder:
    size = files = largest_bytes = 0
    largest, whole = "", True
    for entry_path, entry_bytes in walk(path):
        size, files = size + entry_bytes, files + 1
        if entry_bytes > largest_bytes:
            largest, largest_bytes = entry_path, entry_bytes
        if files % 256 == 0 and is_late():
            whole = False
            break
    disk = os.statvfs(path)
    return Folder(
        path=str(path), size_bytes=size, files=files, largest=largest,
        largest_bytes=largest_bytes, is_whole=whole,
        on_tmpfs=read_file_system(host, path) == "tmpfs",
        disk_free_bytes=disk.f_bavail * disk.f_frsize,
        disk_size_bytes=disk.f_blocks * disk.f_frsize,
    )  # fmt: skip


def walk(top: Path) -> Iterator[tuple[str, int]]:
    """Files with their size on disk; links are not followed."""
    directories = [str(top)]
    while directories:
        try:
            with os.scandir(directories.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        directories.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        yield entry.path, entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue


def read_file_system(host: Host, path: Path) -> str:
    """The type of the innermost mount that has the path."""
    best, kind = "", ""
    for point, name in read_mounts(host.proc):
        inside = str(path) == point or str(path).startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, name
    return kind


def read_state(host: Host, state: Path, runtime: Path, logs_keep_bytes: int) -> State:
    # The contents of a directory that is closed to us are not judged: the directory is the problem.
    is_open = os.access(state, os.X_OK) or not state.exists()
    return State(
        directories=(
            read_directory(state, host, keeps=True),
            read_directory(runtime, host, keeps=False),
        ),
        logs_bytes=sum(size for _path, size in islice(walk(state / "runs"), MOST_FILES)),
        logs_keep_bytes=logs_keep_bytes,
        disk=read_disk(state) if is_open and state.is_dir() else None,
        store_error=read_store_error(state / "ramherd.db") if is_open else "",
    )


def read_directory(path: Path, host: Host, *, keeps: bool) -> OwnDirectory:
    above = next(parent for parent in (path, *path.parents) if parent.exists())
    disk = os.statvfs(above)
    kind, free = read_file_system(host, above), disk.f_bavail * disk.f_frsize
    writable = os.access(above, os.W_OK | os.X_OK)
    if above != path:
        return OwnDirectory(
            str(path), keeps, exists=False, is_writable=writable, file_system=kind, free_bytes=free
        )
    found = path.stat()
    return OwnDirectory(
        str(path), keeps, exists=True,
        is_ours=find_dir_problem(path) is None,
        mode=found.st_mode & 0o777, is_writable=writable, file_system=kind, free_bytes=free,
    )  # fmt: skip
