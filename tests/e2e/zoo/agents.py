"""Animals of the zoo that real agents left: killed above a build, a training, a dev server and an
endless wait, each with three MCP servers; ended normally with jobs in the background; and alive.

The label comes from the environment of the agent, that of a server from the agent's settings.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from e2e.agent_home import INSTALLED, make_home
from e2e.strays.sessions import (
    STAY,
    Server,
    family,
    node_server,
    own_of,
    own_server,
    read_command,
    start,
)
from e2e.zoo.species import LABEL, Zoo, await_
from llm import LLM

AGENTS = ("claude", "codex", "gemini", "opencode")
# The word in a command line that shows that the job is under way; the label of what is left.
JOBS = {
    "build": ("make -C {jobs}", "make", "keep"),
    "training": ("{python} -S {jobs}/train.py > train.log", "train.py", "keep"),
    "dev-server": ("{python} -S -m http.server --bind 127.0.0.1 0", "http.server", "keep"),
    # claude refuses to sleep.
    "wait": ("tail -f /dev/null", "tail", "orphan"),
}
# In the background, each without a parent, before the agent ends by itself.
LEFT = (
    "(setsid {python} -S {jobs}/train.py > train.log 2>&1 &)",
    "(nohup {python} -S -m http.server --bind 127.0.0.1 0 > /dev/null 2>&1 &)",
    "(setsid {python} -S {jobs}/busy.py > /dev/null 2>&1 < /dev/null &)",
    "(setsid tail -f /dev/null > later.log 2>&1 < /dev/null &)",
)
# A tenth of a core: sixteen of them leave the machine to the others.
WORK = "import time\nwhile True:\n    end = time.process_time() + 0.03\n"
WORK += "    while time.process_time() < end: pass\n"
BUSY = WORK + "    time.sleep(0.27)\n"
TRAIN = WORK + "    print('loss', flush=True)\n    time.sleep(0.27)\n"
MAKEFILE = """\
all: $(addprefix {jobs}/out/,$(addsuffix .o,{numbers}))
{jobs}/out/%.o:
	@{python} -S {jobs}/compile.py > /dev/null
"""


def agents_killed_at_work(zoo: Zoo) -> None:
    with_agents(zoo, kill_at_work)


def with_agents(zoo: Zoo, act: Callable[[Zoo, str], None]) -> None:
    """With all that are installed: `make agents`."""
    if not (INSTALLED / "claude").exists():
        return
    jobs = make_jobs(zoo.place.root / "jobs")
    words = {"python": sys.executable, "jobs": str(jobs)}
    scripts = {
        name: [{"shell": command.format(**words)}, {"say": "never"}]
        for name, (command, _word, _label) in JOBS.items()
    }
    scripts["leave"] = [{"shell": "; ".join(LEFT).format(**words)}, {"say": "Done."}]
    # Live agents talk to it for as long as the zoo is there.
    llm = LLM(scripts).__enter__()
    zoo.held.append(llm)
    act(zoo, llm.url)


def make_jobs(jobs: Path) -> Path:
    if not jobs.exists():
        jobs.mkdir()
        (jobs / "train.py").write_text(TRAIN)
        (jobs / "busy.py").write_text(BUSY)
        (jobs / "compile.py").write_text(BUSY.replace("while True", "for _step in range(3)", 1))
        numbers = " ".join(map(str, range(2000)))
        makefile = MAKEFILE.format(jobs=jobs, numbers=numbers, python=sys.executable)
        (jobs / "Makefile").write_text(makefile)
    return jobs


def servers_of(zoo: Zoo, label: str) -> dict[str, Server]:
    """One of npm that ends with its stdin, one that does not, and the user's own."""
    own = own_server(zoo.place.root)
    found = {"one": node_server("everything"), "two": node_server("memory", "--import", STAY)}
    return {name: Server(one.argv, {LABEL: label}) for name, one in {**found, "own": own}.items()}


def kill_at_work(zoo: Zoo, url: str) -> None:
    for agent in AGENTS:
        started = {
            job: start(
                agent, zoo.place.root / f"{agent}-{job}", url, f"do it [script {job}]",
                servers_of(zoo, f"orphan:{agent}-server"), **{LABEL: f"{label}:{agent}-{job}"},
            )
            for job, (_command, _word, label) in JOBS.items()
        }  # fmt: skip
        for job, process in started.items():
            ready = partial(is_at_work, process.pid, JOBS[job][1])
            members = await_(ready, f"{agent} at its {job}")
            for pid in own_of(agent, members):
                os.kill(pid, signal.SIGKILL)
            process.wait()


def is_at_work(root: int, word: str) -> dict[int, str] | None:
    """The job runs, and so do the servers."""
    found = family(root)
    commands = [read_command(pid) for pid in found]
    servers = sum("/server-" in one or "weather-tools" in one for one in commands[1:])
    # The prompt of the agent itself has no such word.
    at_work = any(word in one and "[script" not in one for one in commands)
    return found if at_work and servers >= 3 else None


def agents_that_ended(zoo: Zoo) -> None:
    """What they left with nohup or setsid works, listens or writes for their user."""
    with_agents(zoo, end_normally)


def end_normally(zoo: Zoo, url: str) -> None:
    started = [
        start(
            agent, zoo.place.root / f"{agent}-ended", url, "do it [script leave]", {},
            **{LABEL: f"keep:{agent}-left"},
        )
        for agent in AGENTS
    ]  # fmt: skip
    for process in started:
        assert process.wait(90) == 0, process.args


def agents_that_live(zoo: Zoo) -> None:
    """Waiting for a tool, with all their servers; and one in the background of `claude agents`."""
    with_agents(zoo, live_on)


def live_on(zoo: Zoo, url: str) -> None:
    for agent in AGENTS:
        label = f"keep:{agent}-live"
        process = start(
            agent, zoo.place.root / f"{agent}-live", url, "do it [script wait]",
            servers_of(zoo, label), **{LABEL: label},
        )  # fmt: skip
        await_(partial(is_at_work, process.pid, "tail"), f"{agent} at work")
        zoo.held.append(process)
    start_in_background(zoo, url, "keep:claude-background")


def start_in_background(zoo: Zoo, url: str, label: str) -> None:
    """`claude --bg` in a directory that its user trusts."""
    folder = zoo.place.root / "claude-background"
    folder.mkdir()
    home = make_home("claude", folder, url)
    trusted = {str(home.cwd): {"hasTrustDialogAccepted": True}}
    settings = {
        "hasCompletedOnboarding": True, "projects": trusted,
        "customApiKeyResponses": {"approved": ["none"], "rejected": []},
    }  # fmt: skip
    (folder / "home-claude/.claude.json").write_text(json.dumps(settings))
    # Its socket's path may have 107 letters.
    env = {**home.env, LABEL: label, "TMPDIR": "/tmp"}
    subprocess.run(
        [INSTALLED / "claude", "--bg", "say hello [script hello]"], env=env, cwd=home.cwd,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        check=True, timeout=60,
    )  # fmt: skip


ALL = (agents_killed_at_work, agents_that_ended, agents_that_live)
