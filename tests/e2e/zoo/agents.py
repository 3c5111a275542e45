"""Animals of the zoo that real agents left: killed above a build, a training, a dev server and an
endless wait, each with three MCP servers; ended normally with jobs in the background; and alive.

The label comes from the environment of the agent, that of a server from the agent's settings, and
that of a job in the background from its command line. A few agents start at a time: more would
only wait for the processors, and for their own patience with servers that are slow to start.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

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

# The slowest first.
AGENTS = ("gemini", "opencode", "claude", "codex")
AT_ONCE = 4
# How long an agent may take to start, with its servers, on a machine that is busy with others.
START_S = 180.0
# A look reads all processes, which is work for the processors that the agents wait for.
LOOK_EVERY_S = 0.25
# The word in a command line that shows that the job is under way; the label of what is left.
JOBS = {
    "build": ("make -C {jobs}", "make", "keep"),
    "training": ("{python} -S {jobs}/train.py > train.log", "train.py", "keep"),
    "dev-server": ("{python} -S -m http.server --bind 127.0.0.1 0", "http.server", "keep"),
    # claude refuses to sleep.
    "wait": ("tail -f /dev/null", "tail", "orphan"),
}
# In the background, each without a parent, before the agent ends by itself.
LEFT = {
    "training": "setsid {python} -S {jobs}/train.py > train.log 2>&1",
    "server": "nohup {python} -S -m http.server --bind 127.0.0.1 0 > /dev/null 2>&1",
    "busy": "setsid {python} -S {jobs}/busy.py > /dev/null 2>&1 < /dev/null",
    "log": "setsid tail -f /dev/null > later.log 2>&1 < /dev/null",
}
# A twentieth of a core from the moment on at which the zoo is complete: until then, processors are
# for those who start.
WORK = """\
import os, sys, time
while not os.path.exists({go!r}):
    time.sleep(0.1)
while True:
    end = time.process_time() + 0.02
    while time.process_time() < end: pass
    time.sleep(0.38)
"""
TRAIN = WORK + "    print('loss', flush=True)\n"
COMPILE = WORK.replace("while True", "for _step in range(5)")
MAKEFILE = """\
all: $(addprefix {jobs}/out/,$(addsuffix .o,{numbers}))
{jobs}/out/%.o:
	@{python} -S {jobs}/compile.py > /dev/null
"""


def agents(zoo: Zoo) -> None:
    """All that are installed: `make agents`."""
    if not (INSTALLED / "claude").exists():
        return
    jobs = make_jobs(zoo)
    words = {"python": sys.executable, "jobs": str(jobs)}
    scripts = {
        name: [{"shell": command.format(**words)}, {"say": "never"}]
        for name, (command, _word, _label) in JOBS.items()
    }
    left = (f"({LABEL}=keep:left-{name} {command} &)" for name, command in LEFT.items())
    scripts["leave"] = [{"shell": "; ".join(left).format(**words)}, {"say": "Done."}]
    # Live agents talk to it for as long as the zoo is there.
    llm = LLM(scripts).__enter__()
    zoo.held.append(llm)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(act, zoo, llm.url) for act in acts()]:
            done.result()


def acts() -> Iterator[Callable[[Zoo, str], None]]:
    for agent in AGENTS:
        yield from (partial(kill_at_work, agent, job) for job in JOBS)
        yield partial(end_normally, agent)
        yield partial(live_on, agent)
    yield start_in_background


def make_jobs(zoo: Zoo) -> Path:
    jobs = zoo.place.root / "jobs"
    jobs.mkdir()
    go = str(zoo.place.complete)
    for name, code in {"train": TRAIN, "busy": WORK, "compile": COMPILE}.items():
        (jobs / f"{name}.py").write_text(code.format(go=go))
    numbers = " ".join(map(str, range(2000)))
    makefile = MAKEFILE.format(jobs=jobs, numbers=numbers, python=sys.executable)
    (jobs / "Makefile").write_text(makefile)
    return jobs


def servers_of(zoo: Zoo, label: str) -> dict[str, Server]:
    """One of npm that ends with its stdin, one that does not, and the user's own."""
    own = own_server(zoo.place.root)
    found = {"one": node_server("everything"), "two": node_server("memory", "--import", STAY)}
    return {name: Server(one.argv, {LABEL: label}) for name, one in {**found, "own": own}.items()}


def kill_at_work(agent: str, job: str, zoo: Zoo, url: str) -> None:
    _command, word, label = JOBS[job]
    session = Session(agent, job, word, f"{label}:{agent}-{job}", "orphan:agent-server")
    process, members = start_at_work(zoo, url, session)
    for pid in own_of(agent, members):
        os.kill(pid, signal.SIGKILL)
    process.wait()


def live_on(agent: str, zoo: Zoo, url: str) -> None:
    """Waiting for a tool, with all its servers."""
    session = Session(agent, "wait", "tail", f"keep:{agent}-live", "keep:live-server")
    process, _members = start_at_work(zoo, url, session)
    zoo.held.append(process)


class Session(NamedTuple):
    """`word` in a command line shows that the job is under way. The labels of the agent, which its
    tools inherit, and of its servers.
    """

    agent: str
    job: str
    word: str
    label: str
    server_label: str


def start_at_work(
    zoo: Zoo, url: str, session: Session
) -> tuple["subprocess.Popen[bytes]", dict[int, str]]:
    """The agent, and all processes of its session: the job, and three servers."""
    process = start(
        session.agent, zoo.place.root / session.label.partition(":")[2], url,
        f"do it [script {session.job}]", servers_of(zoo, session.server_label),
        **{LABEL: session.label},
    )  # fmt: skip
    ready = partial(is_at_work, process.pid, session.word)
    return process, await_(ready, f"{session.agent} at {session.job}", START_S, LOOK_EVERY_S)


def is_at_work(root: int, word: str) -> dict[int, str] | None:
    """The job runs, and so do the servers."""
    found = family(root)
    commands = [read_command(pid) for pid in found]
    servers = sum("/server-" in one or "weather-tools" in one for one in commands[1:])
    # The prompt of the agent itself has no such word.
    at_work = any(word in one and "[script" not in one for one in commands)
    return found if at_work and servers >= 3 else None


def end_normally(agent: str, zoo: Zoo, url: str) -> None:
    """What it left with nohup or setsid works, listens or writes for its user."""
    process = start(
        agent, zoo.place.root / f"{agent}-ended", url, "do it [script leave]", {},
        **{LABEL: f"keep:{agent}-ended"},
    )  # fmt: skip
    assert process.wait(START_S) == 0, process.args


def start_in_background(zoo: Zoo, url: str) -> None:
    """`claude --bg` in a directory that its user trusts."""
    folder = zoo.place.root / "background"
    folder.mkdir()
    home = make_home("claude", folder, url)
    trusted = {str(home.cwd): {"hasTrustDialogAccepted": True}}
    settings = {
        "hasCompletedOnboarding": True, "projects": trusted,
        "customApiKeyResponses": {"approved": ["none"], "rejected": []},
    }  # fmt: skip
    (folder / "home-claude/.claude.json").write_text(json.dumps(settings))
    # Its socket's path may have 107 letters.
    short = zoo.place.root / "t"
    short.mkdir()
    env = {**home.env, LABEL: "keep:claude-background", "TMPDIR": str(short)}
    subprocess.run(
        [INSTALLED / "claude", "--bg", "say hello [script hello]"], env=env, cwd=home.cwd,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        check=True, timeout=START_S,
    )  # fmt: skip
