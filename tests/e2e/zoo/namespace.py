"""A program as process 1 of a pid namespace: nothing outside can be seen or ended from inside, and
all that is inside ends with it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# Real agents take a minute to start on two cores, and longer on a busy machine.
DEADLINE_S = 400


def in_namespace(program: str, *args: str) -> dict[str, Any]:
    """What it prints as JSON. Its last argument is a directory, which is removed afterwards."""
    rights = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    root = Path(tempfile.mkdtemp(prefix="ramherd-zoo-"))
    env = {
        **os.environ,
        "XDG_STATE_HOME": str(root / "state"),
        "XDG_CONFIG_HOME": str(root / "config"),
        "RAMHERD_RUNTIME_DIR": str(root / "runtime"),
    }
    try:
        done = subprocess.run(
            ["unshare", *rights, "--pid", "--fork", "--kill-child", "--mount-proc",
             sys.executable, program, *args, str(root)],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True,
            timeout=DEADLINE_S,
        )  # fmt: skip
    finally:
        shutil.rmtree(root, ignore_errors=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def call(*args: str) -> dict[str, Any]:
    """`ramherd ... --json` in there."""
    done = subprocess.run(
        [sys.executable, "-m", "ramherd", *args, "--json"], stdout=subprocess.PIPE, check=False
    )
    told: dict[str, Any] = {**json.loads(done.stdout), "exit_code": done.returncode}
    return told
