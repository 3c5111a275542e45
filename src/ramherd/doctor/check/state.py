"""ramherd's own directories, its store and its logs."""

from collections.abc import Iterator

from ramherd.core.units import GIB, MIB, format_size
from ramherd.doctor.facts import OwnDirectory, State
from ramherd.doctor.findings import Finding, SetMode, Severity, quoted

# SQLite's journal and flock need one kernel that knows all who have a file open.
NETWORK = {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs", "afs", "vboxsf"}
FULL_BYTES, LOW_BYTES = 64 * MIB, GIB


def check_state(state: State) -> Iterator[Finding]:
    for place in state.places:
        yield check_place(place)
    if state.store_error:
        store = quoted(f"{state.places[0].path}/ramherd.db")
        yield Finding(
            "store", Severity.PROBLEM, f"{store} cannot be read: {state.store_error}",
            "no herd can start",
            f"mv {store} {store}.broken",
        )  # fmt: skip
    else:
        yield Finding("store", Severity.OK, "the store can be read, or is not there yet")
    yield check_logs(state)


def check_place(place: OwnDirectory) -> Finding:
    free = "" if place.free_bytes is None else f", {format_size(place.free_bytes)} free"
    name = "state" if place.keeps else "runtime"
    what = f"{name} directory {place.path}{'' if place.exists else ' (not made yet)'}{free}"
    level, why, command = judge(place)
    fix = None
    if place.exists and place.is_ours and place.mode & 0o077:
        fix = SetMode(place.path, 0o700, place.mode)
    return Finding(name, level, what, why, command, fix)


def judge(place: OwnDirectory) -> tuple[Severity, str, str]:
    variable = "XDG_STATE_HOME" if place.keeps else "RAMHERD_RUNTIME_DIR"
    elsewhere = f"export {variable}=/a/directory/of/yours"
    if why := unusable(place):
        return Severity.PROBLEM, why, elsewhere
    free = place.free_bytes
    if free is not None and free < FULL_BYTES:
        return Severity.PROBLEM, "no room for the store and for logs", "ramherd prune --keep 0"
    if place.exists and place.mode & 0o077:
        why = f"mode {place.mode:04o}: others can read what agents print"
        return Severity.WARNING, why, f"chmod 700 {quoted(place.path)}"
    if place.keeps and free is not None and free < LOW_BYTES:
        return Severity.WARNING, "logs of a herd may fill it", "ramherd prune --keep 256MiB"
    if place.keeps and place.file_system == "tmpfs":
        return Severity.HINT, "on a tmpfs logs are RAM, and gone after a boot", elsewhere
    return Severity.OK, "", ""


def unusable(place: OwnDirectory) -> str:
    if place.exists and not place.is_ours:
        return "it is no directory of yours: no herd starts"
    if not place.is_writable:
        return "it cannot be written to: no herd starts"
    if place.file_system in NETWORK:
        return f"{place.file_system} is a network file system: locks and the store's journal fail"
    return ""


def check_logs(state: State) -> Finding:
    what = (
        f"logs of runs hold {format_size(state.logs_bytes)} of {format_size(state.logs_keep_bytes)}"
    )
    numbers = {"size_bytes": state.logs_bytes, "keep_bytes": state.logs_keep_bytes}
    if state.logs_bytes > state.logs_keep_bytes:
        why = "more than log_total: the next herd removes the oldest"
        return Finding("logs", Severity.HINT, what, why, "ramherd prune", numbers=numbers)
    return Finding("logs", Severity.OK, what, numbers=numbers)
