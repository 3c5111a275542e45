"""Settings of this process: parent of orphans, and the score by which the kernel kills.

Used by the keeper: imports only `os`; ctypes, which costs 1.1 MB, only in the call that needs it.
"""

import os

from ramherd.system.files import try_control

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# When the kernel must kill, it kills an agent before the user's desktop.
AGENT_OOM_SCORE_ADJ = 500


def become_subreaper() -> None:
    """A process below us that loses its parent becomes our child. The setting survives exec, and a
    child does not inherit it.
    """
    import ctypes  # noqa: PLC0415

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent(parent: int) -> None:
    """The kernel sends TERM to this process when the thread that started it ends. If that thread
    ended before this call, we have another parent now.
    """
    import ctypes  # noqa: PLC0415
    from signal import SIGTERM  # noqa: PLC0415 - not needed in the keeper

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), SIGTERM)


def set_oom_score_adj(value: int) -> bool:
    """Processes that we start inherit it. False if the kernel refuses."""
    return try_control("/proc/self/oom_score_adj", str(value))


def read_file_size_limit() -> int | None:
    """The largest size of a file of ours, if limited (`ulimit -f`)."""
    import resource  # noqa: PLC0415 - rarely used

    soft, _hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    return None if soft == resource.RLIM_INFINITY else soft


def close_descriptors_from(first: int) -> None:
    """Other processes must not wait for us to close a terminal, a pipe or a lock."""
    os.closerange(first, max(map(int, os.listdir("/proc/self/fd"))) + 1)
