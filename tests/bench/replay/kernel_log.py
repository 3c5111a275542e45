"""OOM kills as the kernel's log tells them, by the cgroup of the victim.

It counts also what died in a cgroup that is gone by now. In a storm the kernel leaves lines out
(ten in five seconds): none there means none, many may be more.
"""

import os
import re

VICTIM = re.compile(r"oom-kill:.*task_memcg=(?P<cgroup>[^,]*),task=")


def is_kill_inside(line: str, cgroup: str) -> bool:
    found = VICTIM.search(line)
    return found is not None and f"{found['cgroup']}/".startswith(f"{cgroup}/")


class KernelLog:
    """Counts from now on."""

    def __init__(self, cgroup: str) -> None:
        self._cgroup, self.kills = cgroup, 0
        self._file = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self._file, 0, os.SEEK_END)

    def read_on(self) -> None:
        while True:
            try:
                line = os.read(self._file, 8192).decode(errors="replace")
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue  # older lines were overwritten before we read them
            self.kills += is_kill_inside(line, self._cgroup)

    def close(self) -> None:
        os.close(self._file)
