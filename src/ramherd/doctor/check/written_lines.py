"""Lines in cron, timers, units, scripts and sysctl files that do not work as intended: common bad
advice, and services that give an agent too little memory. Only the matching part is shown.
"""

import re
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import NamedTuple

from ramherd.core.units import MIB, format_size
from ramherd.doctor.check.edits import comment_out, edit_command, place
from ramherd.doctor.facts import COPY_SUFFIX, Line, Unit
from ramherd.doctor.findings import Finding, Severity

# At 200 to 250 MB it dies within 20 heavy prompts; at 300 and more it survives.
LEAST_LIMIT_BYTES = 400 * MIB


class Wrong(NamedTuple):
    check: str
    level: Severity
    kinds: tuple[str, ...]
    pattern: re.Pattern[str]
    why: str
    command: str


SHOWN = 60
RUN = ("cron", "script", "unit", "start")
AGENTS = r"(?:claude|codex|gemini|opencode|qwen|node|bun|mcp[\w-]*)"
# Pids by the name of an agent: $(pgrep -f claude)
FOUND = rf"(?:\$\(|`)\s*(?:pgrep|pidof)(?:\s+-\S+)*\s+['\"]?{AGENTS}\b['\"]?"
BY_NAME = "it ends live sessions too: a name does not tell which process is abandoned"
WRONG = (
    Wrong(
        "cron-step", Severity.WARNING, ("cron",), re.compile(r"^\s*\*/(?:[6-9]\d|\d{3,})(?=\s)"),
        "a step above 59 minutes fires once an hour, at minute 0",
        "{edit}   # two lines, or a systemd timer with OnUnitActiveSec=90min",
    ),
    Wrong(
        "cron-step", Severity.WARNING, ("cron",),
        re.compile(r"^\s*\S+\s+\*/(?:2[4-9]|[3-9]\d|\d{3,})(?=\s)"),
        "a step above 23 hours fires once a day, at midnight",
        "{edit}   # or a systemd timer with OnUnitActiveSec=36h",
    ),
    Wrong(
        "timer-step", Severity.WARNING, ("unit",),
        re.compile(r"^\s*OnCalendar=.*:\d+/(?:[6-9]\d|\d{3,})(?!\d)"),
        "a step above 59 minutes fires once an hour",
        "{edit}   # OnUnitActiveSec=90min",
    ),
    Wrong(
        "kill-by-name", Severity.WARNING, RUN,
        re.compile(
            rf"(?:pkill|killall)(?:\s+-\S+)*\s+['\"]?{AGENTS}\b"
            rf"|(?:pgrep|ps\s[^|]*\|\s*grep)[^|]*{AGENTS}\b.*xargs[^|]*\bkill\b"
            rf"|\bkill\b[^;|&]*{FOUND}"
        ),
        BY_NAME, "ramherd ps",
    ),
    Wrong(
        "ps-column", Severity.WARNING, RUN, re.compile(r"ps\s+-?aux\b.*awk.*\$3\s*==\s*[\"']?1\b"),
        "column 3 of `ps aux` is %CPU, not the parent: it finds whatever uses 1 % of a processor",
        "ramherd ps",
    ),
    Wrong(
        "ppid-1", Severity.HINT, RUN,
        re.compile(
            r"\bps\b.*\bppid\b.*==\s*[\"']?1\b|\bp(?:grep|kill)\s[^|;]*-P\s*1\b|--ppid[ =]1\b"
            # `ps -ef`, or awk alone on its line: column 3 is the parent there.
            r"|(?:\bps\s+-[A-Za-z]*f[A-Za-z]*\b.*|^\s*\|?\s*)awk\b.*\$3\s*==\s*[\"']?1\b"
            r"|\[\[?\s+[\"']?\$\{?(?i:ppid|parent(?:_?pid)?)\}?[\"']?\s+(?:==?|-eq)\s+[\"']?1[\"']?\s+\]"
        ),
        "orphans go to `systemd --user` or a subreaper as well, and daemons have pid 1 too",
        "ramherd ps",
    ),
    Wrong(
        "interrupted", Severity.HINT, RUN, re.compile(r"Request interrupted by user"),
        "it says that a person, or a signal, stopped a turn; nothing of memory",
        "sudo dmesg -T | grep -i -E 'out of memory|oom-kill' | tail",
    ),
    Wrong(
        "pgrep-or", Severity.WARNING, RUN, re.compile(r"p(?:grep|kill)\s[^|;]*\\\|"),
        r"pgrep reads extended patterns: `\|` is a plain bar, and nothing matches",
        "pgrep -f 'one|other'",
    ),
    Wrong(
        "etime", Severity.HINT, RUN,
        re.compile(r"\betime\b(?!s).*(?:cut\s+-d\s*['\"]?:|awk\s+-F\s*['\"]?:)"),
        "etime is [[days-]hours:]minutes:seconds: a part of it says nothing of the age",
        "ps -o etimes= -p $$   # seconds, of the process $$",
    ),
    Wrong(
        "swapoff", Severity.WARNING, RUN, re.compile(r"\bswapoff\s+(?:-a|--all)\b"),
        "all of the swap has to fit into RAM at that moment, or the kernel kills",
        "sudo sysctl -w vm.swappiness=10   # uses less of it",
    ),
    Wrong(
        "address-limit", Severity.WARNING, RUN, re.compile(r"\bulimit\s+-v\s+\d+"),
        "a claude maps 73 GB of addresses and uses 0.2: it does not start, or nothing is limited",
        "ramherd exec --memory-limit 4GiB -- claude",
    ),
    Wrong(
        "no-such-flag", Severity.WARNING, RUN,
        re.compile(r"\bclaude\b[^|;&]*\s--(?:max-memory|agent-count)\b"),
        "claude has no such option",
        "ramherd exec --memory-limit 4GiB -- claude",
    ),
    Wrong(
        "sysctl-overcommit", Severity.PROBLEM, ("sysctl", *RUN),
        re.compile(
            r"vm[./]overcommit_memory\s*=\s*2\b"
            r"|\becho\s+[\"']?2[\"']?\s*(?:>|\|\s*(?:sudo\s+)?tee\s)[^;&|]*vm/overcommit_memory\b"
        ),
        "each claude maps 73 GB of addresses: starts and forks fail while memory is free",
        "{remove} && sudo sysctl -w vm.overcommit_memory=0",
    ),
    Wrong(
        "sysctl-oom-task", Severity.WARNING, ("sysctl", *RUN),
        re.compile(
            r"vm[./]oom_kill_allocating_task\s*=\s*[1-9]\d*"
            r"|\becho\s+[\"']?[1-9]\d*[\"']?\s*(?:>|\|\s*(?:sudo\s+)?tee\s)[^;&|]*"
            r"vm/oom_kill_allocating_task\b"
        ),
        "a switch and no size: the process that asks for the last page is killed",
        "{remove} && sudo sysctl -w vm.oom_kill_allocating_task=0",
    ),
)  # fmt: skip


# Only in files that mention agents: for other programs this may be right.
KILL_9 = Wrong(
    "kill-9", Severity.HINT, ("cron", "script", "unit"),
    re.compile(r"\bkill\s+(?:-9|-KILL|-s\s+(?:9|KILL))\b"),
    "an agent that is killed leaves its tools and MCP servers behind; after TERM its session can "
    "be resumed just as well",
    "ramherd exec -- claude   # in a pen, which is cleared when it ends",
)  # fmt: skip


# Only in files that kill: a loop may as well list the processes.
LOOP = Wrong(
    "kill-by-name", Severity.WARNING, RUN,
    re.compile(
        rf"\bfor\s+\w+\s+in\s+{FOUND}|\bpgrep\b[^|]*{AGENTS}\b[^|]*\|\s*while\s+(?:\w+=\S*\s+)?read\b"
    ),
    BY_NAME, "ramherd ps",
)  # fmt: skip
_KILL = re.compile(r"\bkill\b")


def check_wrong(lines: Sequence[Line]) -> Iterator[Finding]:
    of_agents = {line.path for line in lines if re.search(rf"\b{AGENTS}\b", line.text)}
    kills = {line.path for line in lines if _KILL.search(line.text)}
    found = [finding for line in lines for finding in check_line(line, WRONG)]
    for line in lines:
        found += check_line(line, (KILL_9,)) if line.path in of_agents else ()
        found += check_line(line, (LOOP,)) if line.path in kills else ()
    yield from found or [Finding("written", Severity.OK, "no harmful line in cron and units")]


def check_line(line: Line, wrongs: Sequence[Wrong]) -> Iterator[Finding]:
    for wrong in wrongs:
        if line.kind in wrong.kinds and (match := wrong.pattern.search(line.text)):
            what = f"`{match[0].strip()[:SHOWN]}` in {place(line)}"
            command = wrong.command.replace("{edit}", edit_command(line))
            command = command.replace("{remove}", remove_command(line))
            fix = comment_out(line, "# ") if line.kind == "sysctl" else None
            yield Finding(wrong.check, wrong.level, what, wrong.why, command, fix)


def remove_command(line: Line) -> str:
    """A line of sysctl.d has no other purpose; any other is for the user to edit."""
    if line.kind != "sysctl":
        return edit_command(line)
    sudo = "" if line.is_writable else "sudo "
    return f"{sudo}sed -i{COPY_SUFFIX} '{line.number}s/^/# /' {quote(line.path)}"


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
    name = quote(unit.path.rsplit("/", 1)[-1])
    return f"{whose} set-property {name} MemoryMax={LEAST_LIMIT_BYTES // MIB}M"
