"""A made-up machine in a directory: healthy at first, then each test spoils one thing."""

import os
from pathlib import Path

from ramherd.doctor.examine import THEMES, HostFacts, check_theme
from ramherd.doctor.facts import ProcRow
from ramherd.doctor.findings import Finding
from ramherd.doctor.read.host import Host

MEMINFO = """\
MemTotal:       16777216 kB
MemAvailable:   12582912 kB
CommitLimit:    12582912 kB
Committed_AS:    4194304 kB
"""
VMSTAT = "pswpin 0\noom_kill 0\nballoon_inflate 0\nballoon_deflate 0\n"
SWAPS = """\
Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/zram0                              partition\t8388608\t\t1048576\t\t100
/swapfile                               file\t\t4194304\t\t0\t\t-2
"""
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max data size             unlimited            unlimited            bytes
Max processes             63000                63000                processes
Max open files            20000                20000                files
Max address space         unlimited            unlimited            bytes
"""
PRESSURE = """\
some avg10=0.00 avg60=0.50 avg300=0.00 total=1
full avg10=0.00 avg60=0.10 avg300=0.00 total=1
"""
NODE = "#!/bin/sh\necho '[\"v22.1.0\", 4345298944]'\n"
ELF = b"\x7fELF" + b"\0" * 300
HEALTHY = {
    "proc/meminfo": MEMINFO,
    "proc/vmstat": VMSTAT,
    "proc/swaps": SWAPS,
    "proc/self/mountinfo": "20 1 254:0 / / rw - ext4 /dev/vda rw\n",
    "proc/version": "Linux version 6.18.0 (gcc)\n",
    "proc/self/limits": LIMITS,
    "proc/pressure/memory": PRESSURE,
    "proc/sys/vm/overcommit_memory": "0\n",
    "proc/sys/vm/oom_kill_allocating_task": "0\n",
    "proc/sys/fs/file-max": "1000000\n",
    "proc/sys/fs/file-nr": "5000\t0\t1000000\n",
    "proc/sys/fs/inotify/max_user_watches": "524288\n",
    "proc/sys/fs/inotify/max_user_instances": "1024\n",
    "sys/block/zram0/mm_stat": "2600000 1000000 1000000 0 0 0 0 0 0\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "run/systemd/timesync/synchronized": "",
    "etc/sysctl.d/README.sysctl": "",
    "etc/crontab": "17 * * * * root cd / && run-parts /etc/cron.hourly\n*/30 * * * * root true\n",
    "home/me/.bashrc": "export EDITOR=vi\n",
}


class Root:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = path / "home/me"
        self.rows: list[ProcRow] = []
        for name, text in HEALTHY.items():
            self.write(name, text)
        self.write("swapfile", "", mode=0o600)
        self.program("node", NODE)
        self.program("claude", ELF + b"---- Bun! ----")
        self.process(40, "editor", score=100)

    def write(self, name: str, text: str | bytes, mode: int | None = None) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        if mode is not None:
            path.chmod(mode)
        return path

    def program(self, name: str, content: str | bytes, folder: str = "bin") -> Path:
        return self.write(f"{folder}/{name}", content, mode=0o755)

    def process(
        self, pid: int, name: str, *, score: int = 0, adjusted: int = 0, pages: int = 1000,
        argv: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.write(f"proc/{pid}/stat", f"{pid} ({name}) S 1 1 1 " + "0 " * 15 + "99 0 0")
        self.write(f"proc/{pid}/statm", f"{pages * 2} {pages} 0 0 0 0 0")
        self.write(f"proc/{pid}/oom_score", f"{score}\n")
        self.write(f"proc/{pid}/oom_score_adj", f"{adjusted}\n")
        self.write(f"proc/{pid}/cmdline", "".join(f"{word}\0" for word in argv))

    def host(self, uid: int | None = None, **env: str) -> Host:
        path = f"{self.path}/bin:{self.path}/bin2"
        uid = os.getuid() if uid is None else uid
        return Host(self.path, self.home, {"PATH": path, **env}, uid, self.path / "project")

    def look(self, theme: str, host: Host | None = None) -> list[Finding]:
        facts = HostFacts(host or self.host(), read_rows=lambda: self.rows)
        return check_theme(theme, THEMES[theme], facts)

    def find(self, theme: str, check: str, host: Host | None = None) -> Finding:
        """The worst finding of that check."""
        levels = ("ok", "hint", "warning", "problem")
        found = [finding for finding in self.look(theme, host) if finding.check == check]
        assert found, f"no {check} in {[finding.check for finding in self.look(theme, host)]}"
        return max(found, key=lambda finding: levels.index(finding.level))
