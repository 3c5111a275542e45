"""A command and the processes that it started, ended together."""

import signal
import subprocess
import sys
import time

from ramherd.system.termination import LOOP_REAP_S, kill_group, reap


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


def test_a_loop_does_not_wait_for_a_process_that_cannot_end() -> None:
    """One that hangs in the kernel outlives KILL."""
    with subprocess.Popen(["sleep", "60"]) as process:
        began_s = time.monotonic()

        assert not reap(process, LOOP_REAP_S)
        assert time.monotonic() - began_s < 1
        process.kill()
        assert reap(process, 10)
