"""Lines of the wrong kind in cron, timers, units, scripts and sysctl files: advice that
circulates and does not do what it says. Only the part that matched is shown.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ramherd.health.facts import Line, Unit
from ramherd.health.findings import Finding, Level, quoted
from ramherd.units import MIB, format_size


class Wrong(NamedTuple):
    check: str
    level: Level
    kinds: tuple[str, ...]
    pattern: re.Pattern[str]
    why: str
    command: str


RUN = ("cron", "script", "unit", "start")
# 200 to 250 MB: dead within 20 heavy prompts; 300 and more lives.
LEAST_LIMIT_BYTES = 400 * MIB
AGENTS = r"(?:claude|codex|gemini|opencode|qwen|node|bun|mcp[\w-]*)"
WRONG = (
    Wrong(
        "cron-step", Level.WARNING, ("cron",), re.compile(r"^\s*\*/(?:[6-9]\d|\d{3,})(?=\s)"),
        "a step above 59 minutes fires once an hour, at minute 0",
        "${EDITOR:-vi} {path}   # two lines, or a systemd timer with OnUnitActiveSec=90min",
    ),
    Wrong(
        "kill-by-name", Level.WARNING, RUN,
        re.compile(rf"(?:pkill|killall)(?:\s+-\S+)*\s+['\"]?{AGENTS}\b"),
        "it ends live sessions too: a name does not say who is abandoned",
        "ramherd ps",
    ),
    Wrong(
        "kill-by-name", Level.WARNING, RUN,
        re.compile(rf"(?:pgrep|ps\s[^|]*\|\s*grep)[^|]*{AGENTS}\b.*xargs[^|]*\bkill\b"),
        "it ends live sessions too: a name does not say who is abandoned",
        "ramherd ps",
    ),
    Wrong(
        "ps-column", Level.WARNING, RUN, re.compile(r"ps\s+-?aux\b.*awk.*\$3\s*==\s*1\b"),
        "column 3 of `ps aux` is %CPU, not the parent: it finds whatever uses 1 % of a processor",
        "ps -eo pid,ppid,comm | awk '$2==1'   # but orphans go to `systemd --user` too",
    ),
    Wrong(
        "pgrep-or", Level.WARNING, RUN, re.compile(r"p(?:grep|kill)\s[^|;]*\\\|"),
        r"pgrep reads extended patterns: `\|` is a plain bar, and nothing matches",
        "pgrep -f 'one|other'",
    ),
    Wrong(
        "etime", Level.HINT, RUN,
        re.compile(r"\betime\b(?!s).*(?:cut\s+-d\s*['\"]?:|awk\s+-F\s*['\"]?:)"),
        "etime is [[days-]hours:]minutes:seconds: a part of it says nothing of the age",
        "ps -o etimes= -p PID   # seconds",
    ),
    Wrong(
        "swapoff", Level.WARNING, RUN, re.compile(r"\bswapoff\s+(?:-a|--all)\b"),
        "all of the swap has to fit into RAM at that moment, or the kernel kills",
        "sudo sysctl -w vm.swappiness=10   # uses less of it",
    ),
    Wrong(
        "address-limit", Level.WARNING, RUN, re.compile(r"\bulimit\s+-v\s+\d+"),
        "a claude maps 73 GB of addresses and uses 0.2: it does not start, or nothing is limited",
        "ramherd exec --memory-limit 4GiB -- claude",
    ),
    Wrong(
        "no-such-flag", Level.WARNING, RUN,
        re.compile(r"\bclaude\b[^|;&]*\s--(?:max-memory|agent-count)\b"),
        "claude has no such option",
        "ramherd exec --memory-limit 4GiB -- claude",
    ),
    Wrong(
        "sysctl-overcommit", Level.PROBLEM, ("sysctl", *RUN),
        re.compile(r"vm[./]overcommit_memory\s*=\s*2\b"),
        "each claude maps 73 GB of addresses: starts and forks fail while memory is free",
        "sudo sed -i 's/overcommit_memory *= *2/overcommit_memory = 0/' {path} && "
        "sudo sysctl -w vm.overcommit_memory=0",
    ),
    Wrong(
        "sysctl-oom-task", Level.WARNING, ("sysctl", *RUN),
        re.compile(r"vm[./]oom_kill_allocating_task\s*=\s*[1-9]\d*"),
        "a switch and no size: whoever asks for the last page is killed",
        "sudo sed -i '/oom_kill_allocating_task/d' {path} && "
        "sudo sysctl -w vm.oom_kill_allocating_task=0",
    ),
)  # fmt: skip


def check_wrong(lines: Iterable[Line]) -> Iterator[Finding]:
    found = [finding for line in lines for finding in check_line(line)]
    yield from found or [
        Finding("written", Level.OK, "no line of the wrong kind in cron and units")
    ]


def check_line(line: Line) -> Iterator[Finding]:
    for wrong in WRONG:
        if line.kind in wrong.kinds and (match := wrong.pattern.search(line.text)):
            what = f"`{match[0].strip()}` in {line.path}:{line.number}"
            command = wrong.command.replace("{path}", quoted(line.path))
            yield Finding(wrong.check, wrong.level, what, wrong.why, command)
            if wrong.check == "kill-by-name":
                return


def check_units(units: Sequence[Unit]) -> Iterator[Finding]:
    for unit in units:
        limit = unit.memory_max_bytes
        if limit is not None and limit < LEAST_LIMIT_BYTES:
            yield Finding(
                "unit-limit", Level.WARNING,
                f"{unit.path} gives {unit.program} {format_size(limit)}",
                "claude dies at its start below 140 MB, and within 20 heavy prompts below 250 MB",
                raise_limit(unit),
                numbers={"limit_bytes": limit, "least_bytes": LEAST_LIMIT_BYTES},
            )  # fmt: skip
        else:
            size = "no limit" if limit is None else format_size(limit)
            yield Finding("unit-limit", Level.OK, f"{unit.path} runs {unit.program}: {size}")


def raise_limit(unit: Unit) -> str:
    whose = "systemctl --user" if "/user/" in unit.path else "sudo systemctl"
    name = quoted(unit.path.rsplit("/", 1)[-1])
    return f"{whose} set-property {name} MemoryMax={LEAST_LIMIT_BYTES // MIB}M"
