"""Moves this process into a systemd scope of its own, so that an ordinary user gets kernel limits.

On a systemd machine with cgroup v2, a user's terminal shares its cgroup with other processes. The
user's manager makes a scope with `Delegate=yes`, which we may divide, and moves this process into
it, as for `systemd-run --user --scope -p Delegate=yes`, without a second start of Python. This has
to happen before any process is started, because children would stay behind.
"""

import os
import signal
import time

from ramherd.act.pens import cgroup2
from ramherd.act.pens.cgroup2 import read_pids
from ramherd.measure.cgroups import Trees, read_trees
from ramherd.system.ids import new_id

# A manager answers within 10 ms, and has moved us 5 ms later. A busy manager gets a second for
# each: a user waits for this start, and there are other pens.
ANSWER_S = 1.0
MOVE_S = 1.0
LOOK_EVERY_S = 0.001


def enter_scope(kind: str) -> str:
    """Always returns within two seconds. If a scope is not needed, or cannot be made, the pens find
    the strongest kind that works without it. Returns why a manager that is present gave no scope,
    or "".
    """
    if kind not in ("auto", cgroup2.KIND) or os.geteuid() == 0:
        return ""
    trees = read_trees()
    if not needs_scope(trees) or not has_manager():
        return ""
    if why_not := start_scope(os.getpid()):
        return why_not
    deadline = time.monotonic() + MOVE_S
    while read_trees().v2 == trees.v2:
        if time.monotonic() >= deadline:
            return f"systemd did not move this process within {MOVE_S:g} s"
        time.sleep(LOOK_EVERY_S)
    return ""


def needs_scope(trees: Trees) -> bool:
    """Whether cgroup v2 has the memory controller, and other processes share our cgroup. The pens
    report a cgroup that cannot be read.
    """
    own = trees.v2
    try:
        if own is None or "memory" not in (own / "cgroup.controllers").read_text().split():
            return False
        alone = set(read_pids(own)) <= {os.getpid()}
    except OSError:
        return False
    return not (alone and os.access(own / "cgroup.subtree_control", os.W_OK))


def has_manager() -> bool:
    return os.path.exists(manager_socket())


def manager_socket() -> str:
    return f"/run/user/{os.geteuid()}/systemd/private"


def can_start_scope() -> bool:
    """Tries it with a process that only sleeps, and ends that process at once."""
    if not has_manager():
        return False
    pid = os.posix_spawnp("sleep", ["sleep", str(ANSWER_S)], os.environ)
    try:
        return start_scope(pid) == ""
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def start_scope(pid: int) -> str:
    """Returns "", or why there is no scope: the manager does not answer in time, or refuses."""
    from ramherd.system.dbus import MethodCall, call_method  # noqa: PLC0415 - few machines need it

    call = MethodCall(
        "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))",
        encode_unit(f"run-ramherd-{new_id().lower()}.scope", pid),
    )  # fmt: skip
    try:
        call_method(manager_socket(), call, ANSWER_S)
    except TimeoutError:
        return f"systemd did not answer within {ANSWER_S:g} s"
    except OSError as error:
        return f"systemd: {error.strerror or error}"
    return ""


def encode_unit(name: str, pid: int) -> bytes:
    """Name, mode, properties, and no auxiliary units."""
    from ramherd.system.dbus import Writer  # noqa: PLC0415 - few machines need it

    body = Writer()
    body.string(name)
    body.string("fail")
    properties = body.begin_array(8)
    for key, kind in (("PIDs", "au"), ("Delegate", "b"), ("CollectMode", "s")):
        body.align(8)
        body.string(key)
        body.signature(kind)
        if kind == "au":
            pids = body.begin_array(4)
            body.uint32(pid)
            body.end_array(pids)
        elif kind == "b":
            body.uint32(1)
        else:
            body.string("inactive-or-failed")
    body.end_array(properties)
    body.end_array(body.begin_array(8))
    return bytes(body.data)
