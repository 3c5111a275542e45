"""The heap limit of a runtime, if such a setting has an effect."""

from ramherd.agents import Agent
from ramherd.core.errors import UsageError
from ramherd.core.units import MIB, format_size

# Idle, gemini and qwen have 160 MiB of anonymous memory, and survive with an old space of 128 MiB:
# the memory outside of it (young objects, code, buffers) grows with the work.
OUTSIDE_BYTES = 128 * MIB
# At 96 MiB both abort during their start, at 128 MiB they complete one small task.
LEAST_BYTES = 192 * MIB
# Enough for long sessions; the grant holds a run back long before.
USUAL_BYTES = 1024 * MIB
FORCE = 'write memory_limit = "{}" or more, or ramherd run --force'


# V8 accepts options with dashes or underscores.
OLD_SPACE = "--max-old-space-size="


def choose_heap_bytes(
    grant_bytes: int, limit_bytes: int | None, own_bytes: int | None = None
) -> int:
    """The user's setting for node; else a value below the limit, else twice the grant."""
    if own_bytes is not None:
        return own_bytes
    if limit_bytes is not None:
        return max(limit_bytes - OUTSIDE_BYTES, LEAST_BYTES)
    return max(2 * grant_bytes, USUAL_BYTES)


def parse_node_heap(options: str) -> int | None:
    """The heap that NODE_OPTIONS sets, the last of several; None if it sets none."""
    words = [word.replace("_", "-") for word in options.split()]
    sizes = [word.removeprefix(OLD_SPACE) for word in words if word.startswith(OLD_SPACE)]
    found = [int(size) * MIB for size in sizes if size.isascii() and size.isdigit() and int(size)]
    return found[-1] if found else None


def node_options(heap_bytes: int | None) -> tuple[str, ...]:
    """On the command line: every tool of the agent would inherit NODE_OPTIONS."""
    return () if heap_bytes is None else (f"--max-old-space-size={heap_bytes // MIB}",)


def bun_environment(heap_bytes: int | None) -> dict[str, str]:
    """Bun has no limit; with this RAM size, claude collects earlier (16 % less, 20 prompts)."""
    return {} if heap_bytes is None else {"BUN_JSC_forceRAMSize": str(heap_bytes)}


def check_limit(agent: Agent, limit_bytes: int, hint: str = FORCE) -> None:
    """`{}` in the hint is the least limit."""
    if limit_bytes < agent.floor_bytes:
        least = f"{-(-agent.floor_bytes // MIB)}MiB"
        raise UsageError(
            f"memory_limit {format_size(limit_bytes)} is below the"
            f" {format_size(agent.floor_bytes)} that {agent.name} needs",
            hint=hint.format(least),
        )
