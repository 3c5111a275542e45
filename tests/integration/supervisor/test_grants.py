"""Grants on real processes: runs are held at them, are given more, make room and come back."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from integration.conftest import Ramherd, need
from ramherd.sim import agent

# Less where memory is slow to touch (tests/e2e/uml).
GROWTH_MIB = int(os.environ.get("RAMHERD_TEST_GROWTH", "500"))
AGENT = (sys.executable, "-I", "-S", agent.__file__)
# All that a program asks of the kernel while it grows; each call that fails is printed.
BUSY = """
import mmap, os, socket, subprocess, sys, time
failed = []
def attempt(what, call):
    try:
        call()
    except Exception as error:
        failed.append(f"{what}: {error!r}")
def spawn():
    subprocess.run(["/bin/true"], check=True)
def fork():
    pid = os.fork()
    if not pid:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
def map_():
    with mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        block[::4096] = b"x" * 256
def files():
    with open(sys.argv[1], "wb+") as file:
        file.write(bytes(1 << 18)); file.flush(); file.seek(0)
        assert len(file.read()) == 1 << 18
def sockets():
    one, other = socket.socketpair()
    with one, other:
        one.sendall(bytes(1 << 16)); assert other.recv(1 << 16)
held = []
for step in range(int(sys.argv[2])):
    time.sleep(0.01)
    block = bytearray(1 << 20); block[::4096] = b"x" * 256; held.append(block)
    for call in (map_, files, sockets) + ((spawn, fork) if step % 8 == 0 else ()):
        attempt(call.__name__, call)
print("\\n".join(failed) or "no call failed")
"""
LATE = "import time; b = bytearray({} << 20); b[::4096] = b'x' * len(b[::4096]); time.sleep({})"
LATER = "import time; time.sleep({}); " + LATE


def python(code: str, *args: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *args]


def out_of(result: dict[str, Any]) -> str:
    return Path(result["log"]).read_text()


def test_a_held_run_is_only_late(each_ramherd: Ramherd, tmp_path: Path) -> None:
    """Held and granted hundreds of times while it spawns, forks, maps, reads, writes and talks:
    no system call of it fails.
    """
    job = {"command": python(BUSY, str(tmp_path / "file"), str(GROWTH_MIB))}
    summary = each_ramherd.json([job], "--size-scale", "128")
    assert out_of(summary["results"][0]).strip() == "no call failed"
    assert (summary["done"], summary["oom_kills"], summary["preempted"]) == (1, 0, 0)
    print(each_ramherd.pen, summary["holds"])
    if each_ramherd.pen != "polling":
        assert summary["holds"]["count"] >= 0.2 * GROWTH_MIB
    assert summary["held_s"] > 0


def test_growth_beyond_the_memory_goes_to_the_oldest(each_ramherd: Ramherd) -> None:
    """Three want 150 MiB each of 256: the young ones make room, come back, and all are done."""
    jobs = [{"name": name, "command": python(LATE.format(150, 0.3))} for name in "abc"]
    args = ("--budget", "256MiB", "--time-scale", "10", "--size-scale", "16")
    summary = each_ramherd.json(jobs, *args)
    assert (summary["done"], summary["oom_kills"]) == (3, 0)
    assert summary["results"][0]["runs"] == 1, "the oldest is never preempted"
    # While its new mark is armed a run may come to its backstop; between two looks a polled one
    # may grow by what it takes in a tenth of a second.
    slack = 3 * 48 + 16 if each_ramherd.pen != "polling" else 400
    assert summary["peak_bytes"] <= (256 + slack) << 20


def test_a_preempted_job_goes_on_by_its_resume_command(ramherd: Ramherd, tmp_path: Path) -> None:
    """The first start is `command`, the one after it had to make room `resume_command`, with
    RAMHERD_RESUMED=1; work that was done is not done again.
    """
    jobs = [
        {"name": "old", "command": python(LATER.format(2, 180, 1))},
        agent_job("young", tmp_path, "--flat", "100MiB", "--for", "4"),
    ]
    args = ("--budget", "256MiB", "--time-scale", "10", "--size-scale", "4")
    summary = ramherd.json(jobs, *args)
    young = summary["results"][1]
    assert (summary["done"], summary["preempted"] >= 1, summary["oom_kills"]) == (2, True, 0)
    last = out_of(young).splitlines()[-1]
    assert last.startswith("done trace_s=4.0")
    assert young["runs"] >= 2
    whys = [json.loads(line)["reason"]["why"] for line in events_of(ramherd, "young")]
    assert "patience_over" in whys


def agent_job(name: str, tmp_path: Path, *args: str) -> dict[str, Any]:
    command = [*AGENT, *args, "--state", str(tmp_path / name), "--checkpoint", "0"]
    return {"name": name, "command": command, "resume_command": command}


def test_a_leaking_run_is_restarted_and_goes_on(each_ramherd: Ramherd, tmp_path: Path) -> None:
    """At its mark between tool calls it is stopped, resumed, and done in the end."""
    leaky = agent_job("leaky", tmp_path, "--flat", "40MiB", "--for", "4", "--leak", "60MiB")
    summary = each_ramherd.json([leaky], "--recycle-at", "150MiB", "--time-scale", "5")
    (result,) = summary["results"]
    assert (result["state"], summary["recycled"] >= 1) == ("done", True)
    assert result["peak_bytes"] < 300 << 20


def test_a_leak_that_cannot_be_resumed_is_said(ramherd: Ramherd) -> None:
    """Restarting would lose all its work: it goes on, and its user is told once."""
    command = [*AGENT, "--flat", "40MiB", "--for", "3", "--leak", "60MiB"]
    jobs = [{"name": "leaky", "command": command}]
    summary = ramherd.json(jobs, "--recycle-at", "100MiB", "--time-scale", "5")
    assert (summary["done"], summary["recycled"]) == (1, 0)
    assert summary["lines"].count("warning   leaky: ") == 1


def test_a_run_that_outgrows_everything_fails_with_that_sentence(ramherd: Ramherd) -> None:
    """Alone, with the whole budget: no other try would change it. Held at it or, where somebody
    has to look, found past it already.
    """
    jobs = [{"name": "big", "retries": 3, "command": python(LATE.format(300, 0))}]
    summary = ramherd.json(jobs, "--budget", "128MiB")
    (result,) = summary["results"]
    assert (result["state"], result["runs"], summary["oom_kills"]) == ("failed", 1, 0)
    (why,) = (line for line in summary["lines"].splitlines() if " failed " in line)
    assert "big: " in why
    assert "more than the whole budget of 128 MiB" in why


def test_a_run_that_waits_goes_on_when_there_is_room(ramherd: Ramherd, tmp_path: Path) -> None:
    """It stands still until the other one is done, and its job is `held` meanwhile."""
    grown = tmp_path / "grown"
    first = LATE.format(110, 0) + f"; open({str(grown)!r}, 'w'); time.sleep(2)"
    wait = f"import os, time\nwhile not os.path.exists({str(grown)!r}): time.sleep(0.01)\n"
    jobs = [
        {"name": "first", "command": python("import time; time.sleep(1); " + first)},
        # It stays a while: where somebody has to look, it may grow faster than that.
        {"name": "second", "command": python(wait + LATE.format(140, 0.5))},
    ]
    # Starts are spread over a quarter of a second; nobody loses patience for long after that.
    args = ("--budget", "240MiB", "--size-scale", "4", "--time-scale", "4")
    summary = ramherd.json(jobs, *args, "--max-hold", "2m", "--patience", "2m")
    second = summary["results"][1]
    assert (second["state"], second["end"], second["runs"]) == ("done", "done", 1)
    assert second["held_s"] > 1
    kinds = [json.loads(line)["kind"] for line in events_of(ramherd, "second")]
    assert kinds.index("run_held") < kinds.index("run_granted")


def events_of(ramherd: Ramherd, job: str) -> list[str]:
    return ramherd.run("events", "--job", job, "--json").stdout.splitlines()


def test_a_v8_heap_that_is_full_is_no_failure_of_the_job(ramherd: Ramherd) -> None:
    """It goes back to the queue without using up a retry; in the end it is said."""
    node = need("node", "nodejs")
    grow = "const a=[]; for(;;) a.push(new Array(1000).fill({}))"
    summary = ramherd.json([{"command": [node, "--max-old-space-size=24", "-e", grow]}])
    (result,) = summary["results"]
    assert (result["end"], result["runs"]) == ("heap_exhausted", 3)
    assert summary["level_changes"] == 0


def test_a_lease_that_has_become_small_changes_no_level(ramherd: Ramherd) -> None:
    """While a runs, nothing waits, and the herd leases little more than a needs. b does not find a
    machine that is short of memory.
    """
    jobs: list[dict[str, object]] = [
        {"name": "a", "command": "sleep 1.2"},
        {"name": "b", "command": "true", "after": ["a"]},
    ]
    summary = ramherd.json(jobs, "--budget", "1GiB")

    assert (summary["done"], summary["level_changes"]) == (2, 0)


def test_the_ramp_says_what_held(ramherd: Ramherd) -> None:
    """Two at first, two more after each step without trouble; then it is said how far it went."""
    jobs = [{"name": f"j{n}", "command": python(LATE.format(40, 1.5))} for n in range(12)]
    args = ("--ramp", "2", "--budget", "256MiB", "--time-scale", "20", "--size-scale", "8")
    done = ramherd.run("run", "-", *args, "--pen", ramherd.pen,
                       stdin="".join(json.dumps(job) + "\n" for job in jobs))  # fmt: skip
    assert done.returncode == 0
    assert "ramp: " in done.stderr


def test_events_say_afterwards_why_a_job_waited(ramherd: Ramherd) -> None:
    """`ramherd events` tells of the newest herd, of one job, as text and as JSON."""
    jobs = [{"name": name, "memory": "300MiB", "command": "sleep 1.8"} for name in "ab"]
    ramherd.json(jobs, "--budget", "512MiB")
    text = ramherd.run("events", "--job", "b").stdout
    assert "wait      b: expects 300 MiB, " in text
    lines = ramherd.run("events", "--since", "1h", "--json").stdout.splitlines()
    first = json.loads(lines[0])
    assert {"v", "seq", "at_s", "kind", "herd", "job", "run", "node", "reason"} <= set(first)
    assert ramherd.run("events", "--since", "soon").returncode == 2
    assert "no job" in ramherd.run("events", "--job", "nobody").stderr
