"""The command that adds compressed swap, as doctor and plan print it."""

from ramherd.core.units import GIB


def render_zram_command(ram_bytes: int) -> str:
    """Half of the RAM, in whole GiB: with a ratio of 2.6 it takes a fifth of the RAM when full."""
    size = max(ram_bytes // 2 // GIB, 1)
    return (
        f"sudo modprobe zram && dev=$(sudo zramctl --find --size {size}G --algorithm lz4) "
        '&& sudo mkswap "$dev" && sudo swapon -p 100 "$dev"   # until the next boot'
    )
