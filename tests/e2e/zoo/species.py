"""The zoo's animals. Each function starts some processes, labelled by their environment as `orphan`
or `keep`, and returns when they are as they shall be.
"""

import json
import os
import pty
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

from e2e.zoo.client import INITIALIZE
from e2e.zoo.place import HERE, TOOLS, Place, has_node

LABEL = "ZOO"
DEADLINE_S = 60.0
SLEEP = "1000"
OTHER_UID = 54321
DAEMONS = {"gopls": "daemon", "rust-analyzer": "daemon", "claude": "agent", "codex": "agent"}
BUSY = "import time\nwhile True:\n  sum(range(300000)); time.sleep(0.2)"
Spec = dict[str, Any]


class Zoo:
    """What the species share. It is process 1 of its namespace, and so inherits all orphans."""

    def __init__(self, place: Place) -> None:
        self.place = place
        # Held open for as long as the zoo is: live clients and terminals.
        self.held: list[Any] = []

    def clients(self, label: str, specs: list[Spec], *, kill: bool) -> None:
        """One client with all of these servers, left alive or killed."""
        arguments = json.dumps(complete(specs, label))
        client = self.popen(
            "keep:client", [sys.executable, "-S", str(HERE / "client.py"), arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        expect(client, b"ready")
        if kill:
            client.kill()
            client.wait()
            client.stdout and client.stdout.close()
        else:
            self.held.append(client)

    def popen(self, label: str, argv: list[str], **options: Any) -> "subprocess.Popen[bytes]":
        env = {**os.environ, **options.pop("env", {}), LABEL: label}
        # The zoo's own stderr may be a file, to which all of them would then write.
        return subprocess.Popen(argv, env=env, **{"stderr": subprocess.DEVNULL, **options})

    def lone(self, label: str, argv: list[str], **options: Any) -> None:
        """A daemon: child of process 1, on no terminal, without stdin."""
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        self.held.append(self.popen(label, argv, **{**quiet, "start_new_session": True, **options}))

    def cut_off(self, label: str, argv: list[str], **options: Any) -> int:
        """One whose stdin and stdout lead nowhere any more. Its pid."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = self.popen(label, argv, **{**pipes, **options})
        for end in (process.stdin, process.stdout):
            end and end.close()
        self.held.append(process)
        return process.pid


def complete(specs: list[Spec], label: str) -> list[Spec]:
    return [{**spec, "env": {LABEL: label, **spec.get("env", {})}} for spec in specs]


def expect(process: "subprocess.Popen[bytes]", word: bytes) -> None:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.strip() == word, f"{process.args!r}: {line!r}"


def await_(
    condition: Callable[[], Any], what: str, limit_s: float = DEADLINE_S, every_s: float = 0.02
) -> Any:
    end_s = time.monotonic() + limit_s
    while not (answer := condition()):
        assert time.monotonic() < end_s, f"did not happen: {what}"
        time.sleep(every_s)
    return answer


def servers_whose_client_died(zoo: Zoo) -> None:
    small = {"argv": zoo.place.server, "asks": True}
    zoo.clients("orphan:pipe", [small] * 40, kill=True)
    zoo.clients("orphan:socketpair", [{**small, "stdio": "socket"}] * 30, kill=True)
    zoo.clients("orphan:setsid", [{**small, "session": True}] * 20, kill=True)
    detached = {"argv": ["setsid", "-f", *zoo.place.server], "asks": True}
    zoo.clients("orphan:detached", [detached] * 5, kill=True)
    zoo.clients("keep:detached", [detached] * 5, kill=False)
    for name in ("gopls", "rust-analyzer", "clangd"):
        language = {"argv": [zoo.place.program(name), SLEEP]}
        zoo.clients("orphan:language", [language] * 8, kill=True)


def servers_with_children(zoo: Zoo) -> None:
    parent = {"argv": zoo.place.server, "asks": True, "env": {"ZOO_CHILD": "1"}}
    zoo.clients("orphan:with-child", [parent] * 8, kill=True)


def servers_that_are_busy(zoo: Zoo) -> None:
    """On the end of their stdin, with a browser, or with a job of their own below a shell."""
    spins = {"argv": zoo.place.server, "asks": True, "env": {"ZOO_SPIN": "1"}}
    zoo.clients("orphan:spins", [spins] * 2, kill=True)
    browser = {"argv": zoo.place.server, "asks": True}
    browser["env"] = {"ZOO_BROWSER": zoo.place.subreaper("chrome")}
    zoo.clients("orphan:with-browser", [browser] * 2, kill=True)
    command = f"{sys.executable} -S -c '{BUSY}'"
    job = {"argv": zoo.place.server, "asks": True, "env": {"ZOO_JOB": command}}
    zoo.clients("keep:job-below-server", [job], kill=True)


def kept_by_the_user(zoo: Zoo) -> None:
    """By a variable, or by a pattern in the settings."""
    settings = Path(os.environ["XDG_CONFIG_HOME"]) / "ramherd/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('stray_keep = ["*keep-me*"]\n')
    for _copy in range(3):
        zoo.cut_off("keep:variable", [zoo.place.program("gopls"), SLEEP], env={"RAMHERD_KEEP": "1"})
        zoo.clients(
            "keep:pattern", [{"argv": [*zoo.place.server, "keep-me"], "asks": True}], kill=True
        )


def started_by_hand(zoo: Zoo) -> None:
    """Servers and jobs of a user who has logged out."""
    python = [sys.executable, "-S"]
    serve = [*python, "-m", "http.server", "--bind", "127.0.0.1", "0"]
    for _copy in range(3):
        zoo.lone("keep:hand-server", ["nohup", *serve], stderr=subprocess.DEVNULL)
        with (zoo.place.root / "hand.log").open("ab") as log:
            zoo.lone("keep:hand-job", ["nohup", *python, "-c", BUSY], stdout=log)
        zoo.lone("keep:hand-mcp", [*zoo.place.server, "--port", "0"])


def servers_that_ignore_hangups(zoo: Zoo) -> None:
    """nohup does not make a stdio server useful without its client."""
    server = {"argv": ["nohup", *zoo.place.server], "asks": True}
    zoo.clients("orphan:nohup", [server] * 5, kill=True)


def servers_with_hostile_names(zoo: Zoo) -> None:
    for name in ("foo) Z", "a\nb\n", ") R 1 1", "\x1b[2Jclaude", "systemd"):
        spec = {"argv": zoo.place.server, "asks": True, "env": {"ZOO_NAME": name}}
        zoo.clients("orphan:hostile-name", [spec], kill=True)
        zoo.clients("keep:hostile-name", [spec], kill=False)


def servers_with_long_command_lines(zoo: Zoo) -> None:
    """The kernel takes 128 KiB a word."""
    words = " ".join([*zoo.place.server, *["$BIG"] * 8])
    script = f"BIG=$(head -c 131000 /dev/zero | tr '\\0' x); exec {words}"
    spec = {"argv": ["sh", "-c", script], "asks": True}
    zoo.clients("orphan:long-command", [spec], kill=True)
    zoo.clients("keep:long-command", [spec], kill=False)


def tools_whose_agent_died(zoo: Zoo) -> None:
    """As claude starts them, with its pid and its own file for output; and as codex does."""
    output = zoo.place.root / "claude-0/-home-zoo/1e0f28-a66d/tasks"
    output.mkdir(parents=True)
    shell = ["bash", "-c", "sleep 1000; true"]
    claude = {
        "argv": shell, "stdin": "null", "stdout": str(output / "a.output"), "session": True,
        "env": {"CLAUDECODE": "1", "CLAUDE_PID": "{pid}"},
    }  # fmt: skip
    codex = {"argv": shell, "stdin": "null", "session": True, "env": {"CODEX_THREAD_ID": "1"}}
    zoo.clients("orphan:claude-tool", [claude] * 6, kill=True)
    zoo.clients("orphan:codex-tool", [codex] * 6, kill=True)
    zoo.clients("keep:claude-tool", [claude] * 3, kill=False)
    zoo.clients("keep:codex-tool", [codex] * 3, kill=False)


def tools_that_shall_stay(zoo: Zoo) -> None:
    """Their agent died, but they print to a file of their own, or have windows."""
    marks = {"CLAUDECODE": "1", "CLAUDE_PID": "{pid}"}
    notes = zoo.place.root / "claude-notes"
    notes.mkdir()
    own = {
        "argv": ["sleep", SLEEP], "stdin": "null", "stdout": str(notes / "train.log"),
        "session": True, "env": marks,
    }  # fmt: skip
    zoo.clients("keep:own-output", [own] * 4, kill=True)
    browser = {
        "argv": [zoo.place.program("chrome"), SLEEP], "stdin": "null", "session": True,
        "env": marks, "display": str(show_display(zoo)),
    }  # fmt: skip
    zoo.clients("keep:windows", [browser] * 3, kill=True)
    nohup = {"argv": ["nohup", "sleep", SLEEP], "stdin": "null", "session": True, "env": marks}
    zoo.clients("orphan:nohup-tool", [nohup] * 4, kill=True)


def show_display(zoo: Zoo) -> Path:
    """A socket where an X server would have its own; it takes all that come."""
    path = zoo.place.root / ".X11-unix/X7"
    path.parent.mkdir()
    display = socket.socket(socket.AF_UNIX)
    display.bind(str(path))
    display.listen()
    threading.Thread(target=take_all, args=(display, zoo.held), daemon=True).start()
    return path


def take_all(display: socket.socket, held: list[Any]) -> None:
    while True:
        held.append(display.accept()[0])


def servers_below_subreapers(zoo: Zoo) -> None:
    """A user's service manager by name, and one of a name that nobody knows."""
    specs = [{"argv": zoo.place.server, "asks": True}] * 10
    for name in ("systemd", "herdsman"):
        arguments = json.dumps(complete(specs, f"orphan:{name}"))
        client = [sys.executable, "-S", str(HERE / "client.py"), arguments]
        keeper = start_keeper(zoo, name, client)
        expect(keeper, b"ready")
        assert keeper.stdin is not None
        keeper.stdin.write(b"now\n")
        keeper.stdin.flush()
        expect(keeper, b"killed")
        zoo.held.append(keeper)


def start_keeper(zoo: Zoo, name: str, client: list[str]) -> "subprocess.Popen[bytes]":
    without = ["env", "-u", "PYTHONHOME", *client]
    return zoo.popen(
        f"keep:{name}", [zoo.place.subreaper(name), "-S", str(HERE / "keeper.py"), *without],
        env={"PYTHONHOME": sys.base_prefix}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def servers_of_live_clients(zoo: Zoo) -> None:
    small = {"argv": zoo.place.server, "asks": True}
    zoo.clients("keep:pipe", [small] * 20, kill=False)
    zoo.clients("keep:socketpair", [{**small, "stdio": "socket"}] * 10, kill=False)
    zoo.clients("keep:setsid", [{**small, "session": True}] * 10, kill=False)
    zoo.clients("keep:closed-by-client", [{**small, "closes": True}] * 4, kill=False)


def daemons(zoo: Zoo) -> None:
    """Known software on purpose without a client, and programs that merely look alike."""
    for name, kind in DAEMONS.items():
        program = zoo.place.program(name)
        zoo.lone("keep:setsid-daemon", [program, SLEEP])
        zoo.lone(f"keep:nohup-{kind}", ["nohup", program, SLEEP])
    zoo.lone("keep:watcher", [zoo.place.program("watchman"), SLEEP])
    for name in ("mcp-server-everything", "claude-mcp", "my-mcp-server", "npx"):
        zoo.cut_off("keep:look-alike", [zoo.place.program(name), SLEEP])
    script = "import sys, time; time.sleep(1000)"
    for word in ("claude", "@modelcontextprotocol/server-everything", "mcp_server_git"):
        zoo.cut_off("keep:look-alike", [sys.executable, "-S", "-c", script, word])
    zoo.cut_off(
        "keep:look-alike-shell", ["sh", "-c", "sleep 1000; true", zoo.place.program("gopls")]
    )


def batches(zoo: Zoo) -> None:
    """Fed from a pipe that has ended, and still at work for a file or for a reader."""
    program = [zoo.place.program("gopls"), SLEEP]
    for _copy in range(3):
        with (zoo.place.root / "batch.out").open("ab") as out:
            zoo.cut_off("keep:batch", program, stdout=out)
    reader = zoo.popen("keep:batch-read", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    reader.stdin and reader.stdin.close()
    zoo.held.append(reader)


def agents_of_their_own(zoo: Zoo) -> None:
    """`nohup claude -p ... &`, and one that reads its prompt from a pipe that has ended."""
    program = [zoo.place.program("claude"), SLEEP]
    zoo.cut_off("keep:agent", program)
    zoo.cut_off("keep:agent", [zoo.place.program("opencode"), SLEEP])


def runs_of_other_stores(zoo: Zoo) -> None:
    """The tag of a run that this store knows nothing of proves nothing."""
    for _copy in range(3):
        zoo.cut_off("keep:foreign-run", ["sleep", SLEEP], env={"RAMHERD_RUN": "01ZOO"})


def sessions_with_a_terminal(zoo: Zoo) -> None:
    """Agents with servers below, and a server whose client died, all on terminals."""
    gopls, claude = zoo.place.program("gopls"), zoo.place.program("claude")
    for command in (f"{gopls} {SLEEP} & exec {claude} {SLEEP}", f"exec {gopls} {SLEEP}") * 3:
        start_on_terminal(zoo, "keep:terminal", command)
    start_on_terminal(zoo, "keep:cut-off-on-terminal", f"true | {gopls} {SLEEP} | true & wait")


def start_on_terminal(zoo: Zoo, label: str, command: str) -> None:
    pid, master = pty.fork()
    if pid == 0:
        os.environ[LABEL] = label
        os.execvp("bash", ["bash", "-c", command])
    zoo.held.append(master)


def servers_in_tmux(zoo: Zoo) -> None:
    if shutil.which("tmux") is None:
        return
    env = {"TMUX_TMPDIR": str(zoo.place.root), "TERM": "xterm"}
    for number in range(4):
        command = f"{zoo.place.program('gopls')} {SLEEP}"
        argv = [
            "tmux",
            "-L",
            "zoo",
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            f"s{number}",
            command,
        ]
        zoo.popen("keep:tmux", argv, env=env).wait()


def processes_of_another_user(zoo: Zoo) -> None:
    """Proved or not, they are not ours to end. Only root can make them."""
    if os.getuid() != 0:
        return
    program = [zoo.place.program("gopls"), SLEEP]
    other = {"user": OTHER_UID, "group": OTHER_UID, "extra_groups": ()}
    # Nor can the root of a namespace that has no other user.
    with suppress(subprocess.SubprocessError, PermissionError):
        for _copy in range(5):
            zoo.cut_off("keep:other-user-cut-off", program, **other)
            zoo.lone("keep:other-user", program, **other)


def servers_that_listen(zoo: Zoo) -> None:
    """A page that nobody looks at, or that somebody does; and one started for the network."""
    for number in range(6):
        port = zoo.place.root / f"port{number}"
        label = ("orphan:page", "keep:page-in-use", "keep:network")[number % 3]
        argv = [*zoo.place.server, *(["--port", "0"] if label == "keep:network" else [])]
        spec = {"argv": argv, "asks": True, "env": {"ZOO_LISTEN": str(port)}}
        zoo.clients(label, [spec], kill=True)
        if label == "keep:page-in-use":
            zoo.held.append(socket.create_connection(("127.0.0.1", int(port.read_text()))))


def node_servers(zoo: Zoo) -> None:
    if not has_node():
        return
    for package, stdio in (("server-everything", "pipe"), ("server-memory", "socket")):
        spec = {"argv": zoo.place.node(package), "stdio": stdio, "asks": True}
        zoo.clients(f"orphan:node-{package}", [spec] * 8, kill=True)
        zoo.clients(f"keep:node-{package}", [spec] * 4, kill=False)


def npx_wrappers(zoo: Zoo) -> None:
    """Three processes for each: npm, the shell it starts, the server."""
    if not has_node():
        return
    spec = {
        "argv": ["npx", "--no-install", "mcp-server-memory"], "asks": True,
        "cwd": str(TOOLS),
        "env": {"NODE_OPTIONS": f"--import={HERE / 'stay.mjs'}", "npm_config_offline": "true"},
    }  # fmt: skip
    zoo.clients("orphan:npx", [spec] * 3, kill=True)
    zoo.clients("keep:npx", [spec], kill=False)


def http_servers(zoo: Zoo) -> None:
    """A real one on HTTP, started by a process that is gone, with a client that is there."""
    if not has_node():
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = [*zoo.place.node("server-everything"), "streamableHttp"]
    with (zoo.place.root / "http.out").open("wb") as out:
        zoo.cut_off("keep:http", argv, env={"PORT": str(port)}, stdout=out, stderr=out)
    await_(lambda: is_open(port), f"port {port} of the HTTP server")
    zoo.held.append(listen_to(port))


def listen_to(port: int) -> HTTPResponse:
    """The stream of a session, which stays open: Node closes a connection without a request."""
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    url = f"http://127.0.0.1:{port}/mcp"
    asked = urllib.request.Request(url, json.dumps(INITIALIZE).encode(), accept)
    with urllib.request.urlopen(asked, timeout=DEADLINE_S) as reply:
        session = reply.headers["mcp-session-id"]
    accept = {"Accept": "text/event-stream", "mcp-session-id": session}
    stream = urllib.request.urlopen(urllib.request.Request(url, headers=accept), timeout=DEADLINE_S)
    assert isinstance(stream, HTTPResponse)
    return stream


def is_open(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/mcp", timeout=5)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


ALL = (
    servers_that_are_busy, kept_by_the_user, started_by_hand,
    node_servers, npx_wrappers, http_servers, servers_whose_client_died, servers_with_children,
    servers_that_ignore_hangups, servers_with_hostile_names, servers_with_long_command_lines,
    tools_whose_agent_died, tools_that_shall_stay, servers_below_subreapers,
    servers_of_live_clients, daemons, batches, agents_of_their_own, runs_of_other_stores,
    sessions_with_a_terminal, servers_in_tmux, processes_of_another_user, servers_that_listen,
)  # fmt: skip


def labelled(proc: Path = Path("/proc")) -> Iterator[tuple[int, int, str]]:
    """(pid, start, label) of every living process of the zoo."""
    for entry in proc.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environ = (entry / "environ").read_bytes().split(b"\0")
            stat = (entry / "stat").read_text(errors="replace")
        except OSError:
            continue
        rest = stat[stat.rindex(")") + 2 :].split()
        label = next((word[4:] for word in environ if word.startswith(b"ZOO=")), b"")
        if label and rest[0] not in "ZX":
            yield int(entry.name), int(rest[19]), label.decode()
