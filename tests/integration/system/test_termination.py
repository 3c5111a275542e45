"""A command and the processes that it started, ended together."""

import signal
import subprocess
import sys

from ramherd.system.termination import kill_group


def test_a_command_is_killed_with_what_it_started() -> None:
    """Both are in its session; what has ended already is reaped and left alone."""
    code = "import subprocess; subprocess.Popen(['sleep', '60']); print('ready', flush=True)"
    code += "; __import__('time').sleep(60)"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    with process.stdout as out:
        assert out.readline() == b"ready\n"
        kill_group(process)
        # The child had the other end of the pipe, and is gone with it.
        assert out.read() == b""

    assert process.returncode == -signal.SIGKILL
    kill_group(process)
