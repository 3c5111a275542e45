"""Names for new sessions, where a CLI lets us choose."""

import os


def new_uuid() -> str:
    """A random UUID (version 4), without the module that knows all the others."""
    number = bytearray(os.urandom(16))
    number[6] = number[6] & 0x0F | 0x40
    number[8] = number[8] & 0x3F | 0x80
    text = number.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
