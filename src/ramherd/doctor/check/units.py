"""Services that start an agent, and the memory they give it."""

from collections.abc import Iterator, Sequence

from ramherd.core.units import MIB, format_size
from ramherd.doctor.facts import Unit
from ramherd.doctor.findings import Finding, Severity, quoted

# 200 to 250 MB: dead within 20 heavy prompts; 300 and more lives.
LEAST_LIMIT_BYTES = 400 * MIB


def check_units(units: Sequence[Unit]) -> Iterator[Finding]:
    for unit in units:
        limit = unit.memory_max_bytes
        if limit is not None and limit < LEAST_LIMIT_BYTES:
            yield Finding(
                "unit-limit", Severity.WARNING,
                f"{unit.path} gives {unit.program} {format_size(limit)}",
                "claude dies at its start below 140 MB, and within 20 heavy prompts below 250 MB",
                raise_limit(unit),
                numbers={"limit_bytes": limit, "least_bytes": LEAST_LIMIT_BYTES},
            )  # fmt: skip
        else:
            size = "no limit" if limit is None else format_size(limit)
            yield Finding("unit-limit", Severity.OK, f"{unit.path} runs {unit.program}: {size}")


def raise_limit(unit: Unit) -> str:
    whose = "systemctl --user" if "/user/" in unit.path else "sudo systemctl"
    name = quoted(unit.path.rsplit("/", 1)[-1])
    return f"{whose} set-property {name} MemoryMax={LEAST_LIMIT_BYTES // MIB}M"
