"""Starting over once inside a scope of our own, so that an ordinary user gets kernel limits.

On a systemd machine with cgroup v2 a user's terminal is in a cgroup that others are in as well.
`systemd-run --user --scope -p Delegate=yes` gives us one that is ours to divide. It has to come
before anything else: the program is replaced, and standard input must not be read yet.
"""

import os
import shutil
import subprocess
import sys

from ramherd.act.pens import cgroup2
from ramherd.act.pens.delegation import read_pids
from ramherd.measure.cgroups import Trees, read_trees

MARK = "RAMHERD_SCOPED"
SCOPE = ["systemd-run", "--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes"]
PROBE_S = 5.0


def rescope(kind: str) -> None:
    """Returns when there is no need for it, or no way."""
    if os.environ.pop(MARK, None) or kind not in ("auto", cgroup2.KIND):
        return
    if os.getuid() == 0 or not needs_scope(read_trees()):
        return
    env = {**os.environ, MARK: "1", "XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}"}
    if has_manager() and probe(env):
        os.execvpe(SCOPE[0], [*SCOPE, sys.executable, "-m", "ramherd", *sys.argv[1:]], env)


def needs_scope(trees: Trees) -> bool:
    """cgroup v2 with memory in it, and our own cgroup is not ours alone."""
    own = trees.v2
    if own is None or "memory" not in (own / "cgroup.controllers").read_text().split():
        return False
    alone = set(read_pids(own)) <= {os.getpid()}
    return not (alone and os.access(own / "cgroup.subtree_control", os.W_OK))


def has_manager() -> bool:
    return shutil.which(SCOPE[0]) is not None and os.path.exists(
        f"/run/user/{os.getuid()}/systemd/private"
    )


def probe(env: dict[str, str]) -> bool:
    """Once for nothing: after exec there is no way back to a weaker pen."""
    try:
        tried = subprocess.run(
            [*SCOPE, "true"], env=env, timeout=PROBE_S, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0
