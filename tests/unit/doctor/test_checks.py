"""One file of a healthy machine is spoilt, and the check that is about it fires."""

from pathlib import Path

import pytest

from ramherd.doctor.examine import THEMES
from support.roots import LIMITS, MEMINFO, PRESSURE, SWAPS, VMSTAT, Root

HOME = "home/me"
SYSCTL = "proc/sys"
CRON = "etc/cron.d/agents"


def limited(name: str) -> str:
    return LIMITS.replace(f"{name:<26}unlimited ", f"{name:<26}8589934592")


# theme, check, level, the file, what it says
SPOILT = [
    ("memory", "ram", "warning", "proc/meminfo", MEMINFO.replace("12582912", "4800000", 1)),
    ("memory", "ram", "problem", "proc/meminfo",
     "MemTotal: 1048576 kB\nMemAvailable: 102400 kB\n"),
    ("memory", "swap", "hint", "proc/swaps", SWAPS.splitlines()[0] + "\n"),
    ("memory", "swap", "warning", "proc/swaps", SWAPS.replace("1048576", "8388608", 1)
     .replace("4194304\t\t0", "4194304\t\t4194304")),
    ("memory", "zram", "hint", "proc/swaps",
     "\n".join(line for line in SWAPS.splitlines() if "zram" not in line)),
    ("memory", "oom-kills", "hint", "proc/vmstat", VMSTAT.replace("oom_kill 0", "oom_kill 3")),
    ("virtual", "wsl", "warning", "proc/version", "Linux version 6.6-microsoft-standard-WSL2"),
    ("virtual", "limit", "hint", ".dockerenv", ""),
    ("virtual", "limit", "hint", "proc/1/cgroup", "0::/kubepods.slice/pod1\n"),
    ("limits", "overcommit", "problem", f"{SYSCTL}/vm/overcommit_memory", "2\n"),
    ("limits", "oom-task", "warning", f"{SYSCTL}/vm/oom_kill_allocating_task", "1000\n"),
    ("limits", "inotify-watches", "hint", f"{SYSCTL}/fs/inotify/max_user_watches", "8192\n"),
    ("limits", "inotify-instances", "hint", f"{SYSCTL}/fs/inotify/max_user_instances", "128\n"),
    ("limits", "file-table", "warning", f"{SYSCTL}/fs/file-nr", "900000\t0\t1000000\n"),
    ("limits", "open-files", "hint", "proc/self/limits",
     LIMITS.replace("20000                20000 ", "1024                 20000 ")),
    ("limits", "open-files", "warning", "proc/self/limits",
     LIMITS.replace("20000                20000 ", "256                  256   ")),
    ("limits", "processes", "warning", "proc/self/limits", LIMITS.replace("63000", "512  ")),
    ("limits", "address-space", "problem", "proc/self/limits", limited("Max address space")),
    ("limits", "data-segment", "problem", "proc/self/limits", limited("Max data size")),
    ("pressure", "psi", "hint", "proc/pressure/memory", ""),
    ("pressure", "psi", "hint", "proc/pressure/memory", PRESSURE.replace("0.50", "25.00")),
    ("heap", "heap", "warning", "bin/node", "#!/bin/sh\necho '[\"v22.1.0\", 34359738368]'\n"),
    ("heap", "heap", "warning", "bin/node", "#!/bin/sh\necho '[\"v22.1.0\", 117440512]'\n"),
    ("heap", "heap", "problem", "bin/node",
     "#!/bin/sh\necho 'node: --expose-gc is not allowed in NODE_OPTIONS' >&2; exit 9\n"),
    ("heap", "heap", "hint", "bin/node", "#!/bin/sh\nexit 3\n"),
    ("heap", "heap", "hint", "bin/node", "#!/bin/sh\necho garbage\n"),
    ("heap", "node-options", "warning", f"{HOME}/.bashrc",
     "export NODE_OPTIONS=--max-old-space-size=32768\n"),
    ("heap", "node-options", "warning", f"{HOME}/.zshrc",
     "export NODE_OPTIONS='--max_old_space_size=200'\n"),
    ("heap", "node-options", "hint", f"{HOME}/.config/fish/config.fish",
     "set -gx NODE_OPTIONS --max-old-space-size=4096\n"),
    ("heap", "node-options", "hint", "etc/environment", "NODE_OPTIONS=--max-old-space-size=4096\n"),
    ("heap", "node-options", "warning", "etc/systemd/system/a.service",
     '[Service]\nEnvironment="NODE_OPTIONS=--max-old-space-size=16000"\n'),
    ("heap", "node-options", "warning", f"{HOME}/.config/systemd/user/a.service.d/x.conf",
     "[Service]\nEnvironment=NODE_OPTIONS=--max-old-space-size=16000\n"),
    ("heap", "node-options", "hint", f"{HOME}/.claude/settings.json",
     '{"env": {"NODE_OPTIONS": "--max-old-space-size=8000", "TOKEN": "secret"}}'),
    ("heap", "node-options", "hint", "project/.claude/settings.local.json",
     '{"env": {"NODE_OPTIONS": "--max-old-space-size=8000"}}'),
    ("heap", "node-options", "hint", "etc/claude-code/managed-settings.json",
     '{"env": {"NODE_OPTIONS": "--max-old-space-size=8000"}}'),
    ("heap", "node-options", "hint", f"{HOME}/.gemini/.env",
     "NODE_OPTIONS=--max-old-space-size=8000\n"),
    ("heap", "node-options", "hint", f"{HOME}/.codex/config.toml",
     '[shell_environment_policy]\nset = { NODE_OPTIONS = "--max-old-space-size=8000" }\n'),
    ("heap", "bun-options", "hint", f"{HOME}/.bashrc", "export BUN_OPTIONS=--smol\n"),
    ("heap", "bun-options", "hint", f"{HOME}/.bashrc", "export BUN_JSC_gcMaxHeapSize=1000\n"),
    ("heap", "bun-options", "warning", f"{HOME}/.bashrc", "export BUN_JSC_maxHeap=1000\n"),
    ("heap", "threadpool", "hint", f"{HOME}/.profile", "export UV_THREADPOOL_SIZE=4\n"),
    ("heap", "invented", "hint", f"{HOME}/.profile", "NODE_MAX_CONCURRENT_REQUESTS=5\n"),
    ("heap", "subagents", "hint", f"{HOME}/.claude/settings.json",
     '{"env": {"CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": 2}}'),
    ("clis", "cli-twice", "hint", "bin2/claude", "#!/usr/bin/env node\n"),
    ("clis", "cli-relaunch", "hint", "bin/gemini", "#!/usr/bin/env node\n"),
    ("written", "cron-step", "warning", CRON, "*/90 * * * * me /bin/true\n"),
    ("written", "cron-step", "warning", CRON, "0 */36 * * * me /bin/true\n"),
    ("written", "timer-step", "warning", "etc/systemd/system/a.timer",
     "[Timer]\nOnCalendar=*:0/90\n"),
    ("written", "ppid-1", "hint", CRON, "0 * * * * me ps -eo pid,ppid,comm | awk '$2==1'\n"),
    ("written", "ppid-1", "hint", CRON, "0 * * * * me pgrep -P 1 node\n"),
    ("written", "interrupted", "hint", CRON,
     "0 * * * * me grep -c 'Request interrupted by user' x\n"),
    ("written", "kill-9", "hint", CRON,
     "0 * * * * me ps -C claude -o pid= > x\n1 * * * * me kill -9 $(cat x)\n"),
    ("written", "kill-by-name", "warning", CRON, "0 * * * * me pkill -9 -f claude\n"),
    ("written", "kill-by-name", "warning", f"{HOME}/.bashrc",
     "alias reap='pgrep -f mcp-server | xargs kill -9'\n"),
    ("written", "ps-column", "warning", CRON,
     "0 * * * * me ps aux | grep x | awk '$3==1 {print $2}'\n"),
    ("written", "ps-column", "warning", CRON, "0 * * * * me ps aux | awk '$3 == \"1\"'\n"),
    ("written", "ppid-1", "hint", f"{HOME}/bin/reap",
     "#!/bin/sh\nps -ef | awk '$3 == \"1\" && /claude/ {print $2}'\n"),
    ("written", "ppid-1", "hint", f"{HOME}/.bashrc", "reap() { [ \"$ppid\" = \"1\" ] && echo; }\n"),
    ("written", "ppid-1", "hint", f"{HOME}/.local/bin/reap",
     "#!/usr/bin/env bash\nif [[ $PPID -eq 1 ]]; then echo; fi\n"),
    ("written", "kill-by-name", "warning", f"{HOME}/.bashrc",
     "alias k='kill -9 $(pgrep claude)'\n"),
    ("written", "kill-by-name", "warning", f"{HOME}/reap.sh",
     "#!/bin/bash\nfor pid in $(pgrep claude); do\n  kill -9 $pid\ndone\n"),
    ("written", "kill-by-name", "warning", f"{HOME}/reap.sh",
     "#!/bin/bash\npgrep -f claude | while read pid; do kill $pid; done\n"),
    ("written", "sysctl-overcommit", "problem", f"{HOME}/.bashrc",
     "echo 2 > /proc/sys/vm/overcommit_memory\n"),
    ("written", "sysctl-overcommit", "problem", f"{HOME}/setup.sh",
     "#!/bin/sh\necho 2 | sudo tee /proc/sys/vm/overcommit_memory\n"),
    ("written", "sysctl-oom-task", "warning", f"{HOME}/.profile",
     "echo 1 > /proc/sys/vm/oom_kill_allocating_task\n"),
    ("written", "sysctl-oom-task", "warning", CRON,
     "@reboot root sysctl -w vm.oom_kill_allocating_task=1\n"),
    ("written", "pgrep-or", "warning", CRON, "0 * * * * me pgrep -f 'one\\|two'\n"),
    ("written", "etime", "hint", CRON, "0 * * * * me ps -o etime= -p 1 | cut -d: -f1\n"),
    ("written", "swapoff", "warning", "etc/systemd/system/a.service",
     "[Service]\nExecStart=/bin/sh -c 'swapoff -a'\n"),
    ("written", "address-limit", "warning", f"{HOME}/.bashrc", "ulimit -v 4000000\n"),
    ("written", "no-such-flag", "warning", f"{HOME}/.bashrc",
     "alias c='claude --max-memory 2G'\n"),
    ("written", "sysctl-overcommit", "problem", "etc/sysctl.d/99-agents.conf",
     "vm.overcommit_memory = 2\n"),
    ("written", "sysctl-oom-task", "warning", "etc/sysctl.conf",
     "vm.oom_kill_allocating_task=1000\n"),
    ("written", "unit-limit", "warning", "etc/systemd/system/agent.service",
     "[Service]\nExecStart=/usr/bin/claude -p x\nMemoryMax=200M\n"),
    ("clock", "clock-source", "hint",
     "sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
]  # fmt: skip


@pytest.mark.parametrize("case", SPOILT, ids=lambda case: f"{case[1]}-{case[2]}-{case[3]}")
def test_a_check_fires(root: Root, case: tuple[str, str, str, str, str]) -> None:
    """With why it matters, and a command."""
    theme, check, level, path, text = case
    root.write(path, text, mode=0o755 if path.startswith("bin") else None)

    found = root.find(theme, check)

    assert found.level == level
    assert found.why
    assert found.command
    assert "secret" not in repr(found)


# A pen is found by doing, on the real machine.
@pytest.mark.parametrize("theme", [theme for theme in THEMES if theme != "pens"])
def test_a_healthy_machine_is_left_alone(root: Root, theme: str) -> None:
    """Every check of the theme says ok."""
    found = root.look(theme)

    assert found
    assert [finding for finding in found if finding.level != "ok"] == []


# path, text: near to what fires, and right
RIGHT = [
    (CRON, "*/45 * * * * me /bin/true\n0 */2 * * * me /bin/true\n"),
    (CRON, "0 * * * * me pkill -f my-own-job\n# pkill -9 claude\n"),
    (CRON, "0 * * * * me ps -eo pid,ppid,%cpu | awk '$2==100'\n0 * * * * me pgrep -P 12 x\n"),
    (CRON, "0 * * * * me kill -9 $(cat /run/own.pid)\n0 */12 * * * me /bin/true\n"),
    ("etc/systemd/system/a.timer", "[Timer]\nOnCalendar=*:0/15\nOnCalendar=*-*-* 00:00:00\n"),
    (CRON, "0 * * * * me " + "pkill claude " * 1000),
    (CRON, "0 * * * * me pgrep -f 'one|two'; ps -o etimes= -p 1 | cut -d: -f1\n"),
    (CRON, "0 3 * * * me swapoff /dev/sdb1\n"),
    (CRON, "0 * * * * me ps -eo %cpu,comm,args | awk '$3 == \"10\"'\n"),
    (f"{HOME}/list.sh", "#!/bin/sh\nfor pid in $(pgrep claude); do cat /proc/$pid/status; done\n"),
    (f"{HOME}/.bashrc", "echo 0 > /proc/sys/vm/overcommit_memory\n: # echo 2 > x\n"),
    (f"{HOME}/.local/bin/tool", "#!/usr/bin/env python3\n# pkill\nos.system('pkill claude')\n"),
    (f"{HOME}/.bashrc", "ulimit -v unlimited\nalias c='claude --model x'\n"),
    ("etc/sysctl.conf", "#vm.overcommit_memory = 2\nvm.overcommit_memory = 1\n"),
    ("etc/sysctl.conf", "vm.oom_kill_allocating_task = 0\n"),
    ("etc/systemd/system/agent.service",
     "[Service]\nExecStart=/usr/bin/claude -p x\nMemoryMax=2G\n"),
    ("etc/systemd/system/other.service", "[Service]\nExecStart=/bin/true\nMemoryMax=20M\n"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text"), RIGHT)
def test_a_right_line_is_left_alone(root: Root, path: str, text: str) -> None:
    """What looks like a mistake and is none."""
    root.write(path, text)

    assert {finding.level.value for finding in root.look("written")} == {"ok"}


@pytest.mark.parametrize("text", [
    "export NODE_OPTIONS=--enable-source-maps\n",
    "# export NODE_OPTIONS=--max-old-space-size=99999\n",
    "export UV_THREADPOOL_SIZE=16\nexport BUN_JSC_useJIT=0\nexport BUN_OPTIONS=--hot\n",
    "echo $NODE_OPTIONS\nMY_NODE_OPTIONS=--max-old-space-size=99999\n",
])  # fmt: skip
def test_a_variable_that_does_what_it_should_is_left_alone(root: Root, text: str) -> None:
    """Also one of another name, and one in a comment."""
    root.write(f"{HOME}/.bashrc", text)

    assert {finding.level.value for finding in root.look("heap")} == {"ok"}


def test_every_check_stands_on_its_page(root: Root) -> None:
    """By the name that --json gives it."""
    page = (Path(__file__).parents[3] / "docs/doctor.md").read_text()
    quiet = {finding.check for theme in THEMES for finding in root.look(theme)}

    unnamed = {check for check in quiet | {case[1] for case in SPOILT} if f"`{check}`" not in page}

    assert unnamed == set()


def test_a_heap_that_fits_is_fine_without_a_bun_program(root: Root) -> None:
    """NODE_OPTIONS has no effect only for programs that are not Node."""
    root.program("claude", "#!/usr/bin/env node\n")
    root.write(f"{HOME}/.bashrc", "export NODE_OPTIONS=--max-old-space-size=4096\n")

    assert {finding.level.value for finding in root.look("heap")} == {"ok"}


def test_a_script_that_cron_starts_is_read_too(root: Root) -> None:
    """One step: what it starts itself is not."""
    root.write("opt/reap.sh", "#!/bin/sh\npkill -9 -f claude\n")
    root.write(CRON, "0 * * * * me /opt/reap.sh --quiet\n")

    found = root.find("written", "kill-by-name")

    assert found.what.endswith("/opt/reap.sh:2")
    assert "pkill -9 -f claude" in found.what


def test_the_environment_counts(root: Root) -> None:
    """What is set now is what the next agent gets."""
    found = root.find("heap", "node-options", root.host(NODE_OPTIONS="--max-old-space-size=20000"))

    assert (found.level, found.command) == ("warning", "unset NODE_OPTIONS")


def test_of_a_line_only_the_part_that_matters_is_shown(root: Root) -> None:
    """Cron lines hold passwords."""
    root.write(CRON, "0 * * * * me TOKEN=secret pkill -f claude --token secret\n")

    assert "secret" not in repr(root.look("written"))
