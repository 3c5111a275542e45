"""A /proc/meminfo that tells of the arena: what tools made for whole machines read.

It is mounted over the real one in a namespace of the tool's own. A mount is of one file, so it
is written over in place, always at the same length.
"""

from pathlib import Path

from ramherd.core.units import KIB


def render_meminfo(total_bytes: int, used_bytes: int) -> str:
    free = max(total_bytes - used_bytes, 0)
    sizes = {
        "MemTotal": total_bytes, "MemFree": free, "MemAvailable": free, "Buffers": 0,
        "Cached": 0, "SwapCached": 0, "SwapTotal": 0, "SwapFree": 0,
    }  # fmt: skip
    return "".join(f"{name + ':':<16}{size // KIB:>9} kB\n" for name, size in sizes.items())


class Meminfo:
    def __init__(self, path: Path, total_bytes: int) -> None:
        self.path, self._total_bytes = path, total_bytes
        path.touch()
        self._file = path.open("r+b", buffering=0)
        self.update(0)

    def update(self, used_bytes: int) -> None:
        self._file.seek(0)
        self._file.write(render_meminfo(self._total_bytes, used_bytes).encode())

    def close(self) -> None:
        self._file.close()
