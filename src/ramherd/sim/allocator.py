"""Real memory of a fake agent: pages touched and released, in the agent or in a child.

The caller decides how much to hold and when.
"""

import mmap
import os
import signal

from ramherd.sim.profiles import Profile, split_bursts
from ramherd.system.procfs import read_anonymous_bytes

# A slice assignment cannot be interrupted: 64 MiB take 22 ms, so TERM is never later than that.
_CHUNK_BYTES = 64 << 20
_PAGE = mmap.PAGESIZE


class Reserve:
    """Address space of which the first `held_bytes` are real memory."""

    def __init__(self, size_bytes: int) -> None:
        # The kernel refuses more than the machine has, and it could not be touched anyway.
        machine_bytes = os.sysconf("SC_PHYS_PAGES") * _PAGE
        size_bytes = max(_PAGE, min(_whole_pages(size_bytes + _PAGE), machine_bytes))
        # Private: Python maps shared memory by default, which is counted elsewhere.
        self._map = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        # Huge pages would round each step to 2 MiB; a forked child would be charged for our pages.
        for advice in ("MADV_NOHUGEPAGE", "MADV_DONTFORK"):
            if hasattr(mmap, advice):
                try:
                    self._map.madvise(getattr(mmap, advice))
                except OSError:
                    pass  # EINVAL: a kernel built without huge pages, which is fine too
        self.held_bytes = 0

    def resize(self, size_bytes: int) -> None:
        """Touch or release pages until `size_bytes`, in whole pages, are held."""
        target = max(0, min(_whole_pages(size_bytes), len(self._map)))
        if target < self.held_bytes:
            self._map.madvise(mmap.MADV_DONTNEED, target, self.held_bytes - target)
            self.held_bytes = target
        while self.held_bytes < target:
            end = min(target, self.held_bytes + _CHUNK_BYTES)
            pages = (end - self.held_bytes) // _PAGE
            self._map[self.held_bytes : end : _PAGE] = b"\xa5" * pages
            self.held_bytes = end


class ToolCall:
    """A child that holds the bytes of a burst, and ends with the burst or with its parent."""

    def __init__(self, peak_bytes: int) -> None:
        self._peak_bytes = peak_bytes
        self._pid = 0
        self._orders = -1

    def hold(self, size_bytes: int) -> None:
        """Make a child hold `size_bytes`; 0 ends it, after it has reached its last size."""
        if size_bytes > 0:
            if not self._pid:
                self._start()
            self._order(size_bytes)
        elif self._pid:
            self._end()

    def close(self) -> None:
        """End the child at once."""
        if self._pid:
            # Not reaped yet, so the pid is not reused.
            os.kill(self._pid, signal.SIGKILL)
            self._end()

    def _start(self) -> None:
        orders, self._orders = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(self._orders)
                _obey(orders, self._peak_bytes)
            finally:
                os._exit(0)
        os.close(orders)

    def _order(self, size_bytes: int) -> None:
        try:
            os.write(self._orders, size_bytes.to_bytes(8, "little"))
        except BrokenPipeError:
            pass  # killed at a memory limit: the agent continues without this tool call

    def _end(self) -> None:
        os.close(self._orders)
        os.waitpid(self._pid, 0)
        self._pid = 0


def _obey(orders: int, peak_bytes: int) -> None:
    """Hold the sizes read from the pipe, which ends with the parent: no child outlives it."""
    reserve = Reserve(peak_bytes)
    while order := os.read(orders, 8):
        reserve.resize(int.from_bytes(order, "little"))


class ProfileAllocator:
    """Memory of the whole agent along a profile; its interpreter counts as part of it."""

    def __init__(self, profile: Profile, *, leak_bytes: int, burst_in_child: bool) -> None:
        self._own, self._bursts = profile, None
        if burst_in_child:
            self._own, self._bursts = split_bursts(profile)
        self._tool = ToolCall(self._bursts.peak_bytes if self._bursts else 0)
        self._reserve = Reserve(self._own.peak_bytes + leak_bytes)
        self._interpreter_bytes = read_anonymous_bytes("self")

    def hold(self, at_s: float, leaked_bytes: int) -> None:
        """Hold the profile's memory at `at_s`, plus the leak."""
        sample = self._own.sample_at(at_s)
        own_bytes = max(0, self._own.bytes[sample] - self._interpreter_bytes)
        self._reserve.resize(own_bytes + leaked_bytes)
        if self._bursts:
            self._tool.hold(self._bursts.bytes[sample])

    def close(self) -> None:
        self._tool.close()


def _whole_pages(size_bytes: int) -> int:
    return size_bytes // _PAGE * _PAGE
