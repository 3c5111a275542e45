"""A notice on the user's desktop, where there is one. Its failure is no error: the alert is also an
event in the store.
"""

import os
import shutil
import subprocess

PROGRAM = "notify-send"
# A session bus without a desktop starts no program for notices, and answers only after 25 s.
MOST_S = 2.0


def send_notice(title: str, text: str) -> bool:
    """Whether a desktop showed it. From timers and services, too: the bus is found by its path."""
    program, env = shutil.which(PROGRAM), with_bus()
    if program is None or env is None:
        return False
    try:
        done = subprocess.run(
            [program, "--app-name=ramherd", "--", title, text], env=env, timeout=MOST_S,
            check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def with_bus() -> dict[str, str] | None:
    """The environment with the address of the session bus; None if there is none."""
    if os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return dict(os.environ)
    path = f"/run/user/{os.getuid()}/bus"
    if not os.path.exists(path):
        return None
    return {**os.environ, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={path}"}
