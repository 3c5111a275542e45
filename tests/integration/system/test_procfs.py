"""/proc of this machine: our own descriptors and children."""

import os
import subprocess

from ramherd.system.proc_stat import read_children, read_start_ticks
from ramherd.system.procfs import list_own_descriptors, read_descriptors, read_process


def test_our_own_children_and_descriptors_are_listed() -> None:
    """From the kernel of this machine."""
    read, write = os.pipe()
    try:
        found = read_descriptors("self") or {}
        assert found[read] == found[write]
        assert {read, write} <= set(list_own_descriptors())
    finally:
        os.close(read)
        os.close(write)
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert child.pid in (read_children(os.getpid()) or [child.pid])
        found_child = read_process(child.pid)
        assert found_child is not None
        assert read_start_ticks(child.pid) == found_child.id.start_ticks
    finally:
        child.kill()
        child.wait()
