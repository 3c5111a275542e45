"""Runs a command of the user at the end of a subagent."""

import json
import subprocess

from ramherd.system.termination import kill_group

# Claude waits for the command.
MOST_S = 10.0


def run(command: str, facts: dict[str, object], cwd: str) -> str:
    """Returns the error, if any. The output of the command is discarded: Claude reads our answer
    from standard output.
    """
    quiet = subprocess.DEVNULL
    try:
        child = subprocess.Popen(
            ["/bin/sh", "-c", command], cwd=cwd, start_new_session=True, text=True,
            stdin=subprocess.PIPE, stdout=quiet, stderr=quiet,
        )  # fmt: skip
    except OSError as error:
        return str(error)
    try:
        child.communicate(json.dumps(facts), MOST_S)
    except subprocess.TimeoutExpired:
        kill_group(child)
        return f"{command!r} took longer than {MOST_S:.0f} s and was ended"
    return f"{command!r} ended with {child.returncode}" if child.returncode else ""
