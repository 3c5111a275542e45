"""What `ramherd top` costs while a service has fifty runs, on a small and on a large screen.

cd tests && ../.venv/bin/python -m bench.top_cost [--write ../docs/top.md]
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.tables import publish
from integration.conftest import await_, make_ramherd, pens
from integration.service.conftest import Service
from ramherd.system.procfs import (
    TICKS_PER_S,
    read_descendants,
    read_process,
    read_pss_bytes,
    read_rss_bytes,
)
from support.terminals import Terminal, open_terminal

RUNS, QUEUED, FOR_S, SETTLE_S = 50, 100, 30.0, 15.0
SIZES = ((80, 24), (200, 60))
ALLOWED_SHARE, ALLOWED_BYTES = 0.03, 60_000_000
# Memory that rises and falls, so that every line changes every second.
AGENT = (
    "import time\n"
    "n = 0\n"
    "while True:\n"
    "    n += 1\n"
    "    held = bytearray((1 + n % 5) << 20)\n"
    "    time.sleep(1)\n"
)


class DrawnTop:
    """On a terminal whose output is read and counted."""

    def __init__(self, env: dict[str, str], columns: int, rows: int) -> None:
        command = [sys.executable, "-m", "ramherd", "top"]
        self.terminal: Terminal = open_terminal(command, {**env, "TERM": "xterm-256color"})
        self.terminal.resize(rows, columns)
        self.drawn_bytes = 0
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pids(self) -> list[int]:
        """The parent, and the process that draws."""
        pid = self.terminal.process.pid
        return [pid, *read_descendants(pid)]

    def _read(self) -> None:
        try:
            while data := os.read(self.terminal.fd, 1 << 16):
                self.drawn_bytes += len(data)
        except OSError:
            pass

    def close(self) -> None:
        self.terminal.type("q")
        self.terminal.wait()
        self.terminal.close()


def read_cpu_s(pid: int) -> float:
    found = read_process(pid)
    return found.cpu_ticks / TICKS_PER_S if found is not None else 0.0


def measure(env: dict[str, str], columns: int, rows: int) -> list[str]:
    top = DrawnTop(env, columns, rows)
    try:
        time.sleep(SETTLE_S)
        begin_s, cpu_s = time.monotonic(), sum(map(read_cpu_s, top.pids))
        drawn = top.drawn_bytes
        time.sleep(FOR_S)
        past_s = time.monotonic() - begin_s
        share = (sum(map(read_cpu_s, top.pids)) - cpu_s) / past_s
        parent, child = top.pids[:2]
        rss = read_rss_bytes(child)
        pss = read_pss_bytes(parent) or 0
        sent = (top.drawn_bytes - drawn) / past_s
    finally:
        top.close()
    assert share <= ALLOWED_SHARE, f"{100 * share:.1f} % of a core"
    assert rss <= ALLOWED_BYTES, f"{rss / 1e6:.0f} MB"
    return [
        f"{columns} x {rows}", f"{100 * share:.1f} %", f"{rss / 1e6:.0f} MB",
        f"{pss / 1e6:.0f} MB", f"{sent / 1e3:.1f} kB/s",
    ]  # fmt: skip


def submit(service: Service) -> None:
    job = {"command": [sys.executable, "-S", "-c", AGENT], "memory": "20MiB"}
    service.client.submit([{"name": f"agent-{at:03}", **job} for at in range(RUNS + QUEUED)])
    await_(lambda: len(service.client.snapshot()["runs"]) == RUNS, "fifty runs", 120.0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ramherd = make_ramherd(Path(folder), pens()[0])
        service = Service(ramherd, ("--max-parallel", str(RUNS)))
        service.start()
        try:
            submit(service)
            rows = [measure(ramherd.env, *size) for size in SIZES]
        finally:
            service.stop()
    head = ["screen", "CPU (of a core)", "memory (RSS)", "its parent (PSS)", "to the terminal"]
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
    title = f"With {RUNS} runs whose memory changes every second, and {QUEUED} queued jobs:"
    publish([title, "", *lines], "top-cost", options.write)


if __name__ == "__main__":
    main()
