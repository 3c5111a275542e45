"""The kernel's limits for starting a program: 128 KiB for each argument or variable, and a quarter
of the stack for all of them together (execve(2)).
"""

from __future__ import annotations

TYPE_CHECKING = False  # the keeper's child imports this to explain why a start failed
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# MAX_ARG_STRLEN, less the NUL at the end.
LONGEST_BYTES = (128 << 10) - 1
# The sum is limited to MOST_BYTES even with a larger stack; LEAST_BYTES are always allowed.
MOST_BYTES = 6 << 20
LEAST_BYTES = 128 << 10
POINTER_BYTES = 8


def limit_of_stack(stack_bytes: int) -> int:
    """A negative size means that the stack has no limit."""
    quarter = MOST_BYTES if stack_bytes < 0 else stack_bytes // 4
    return min(max(quarter, LEAST_BYTES), MOST_BYTES)


def explain_length(words: Sequence[bytes]) -> str:
    """Names the argument that is too long; "" if none is. Argument 0 is the program."""
    for number, word in enumerate(words):
        if len(word) > LONGEST_BYTES:
            return explain(f"argument {number}", len(word))
    return ""


def explain_variables(variables: Mapping[bytes, bytes]) -> str:
    for name, text in variables.items():
        size = len(name) + 1 + len(text)
        if size > LONGEST_BYTES:
            return explain(f"variable {shown_name(name)}", size)
    return ""


def explain(what: str, size: int) -> str:
    return f"{what} has {size:,} bytes, the kernel takes {LONGEST_BYTES:,} at most"


def explain_sum(words: Sequence[bytes], variables: Mapping[bytes, bytes], most_bytes: int) -> str:
    """Explains a start that was refused although no single argument or variable is too long."""
    arguments = sum(len(word) + 1 + POINTER_BYTES for word in words)
    sizes = {name: len(name) + len(text) + 2 + POINTER_BYTES for name, text in variables.items()}
    total = arguments + sum(sizes.values())
    largest = max(sizes, key=lambda name: sizes[name], default=b"")
    return (
        f"arguments ({arguments:,} bytes) and environment ({total - arguments:,} bytes) have "
        f"{total:,} together, the kernel takes {most_bytes:,} at most; the largest variable is "
        f"{shown_name(largest)} with {sizes.get(largest, 0):,}"
    )


def shown_name(name: bytes) -> str:
    """Names of variables are printed, values never are."""
    return name.decode("ascii", "backslashreplace")[:100]
