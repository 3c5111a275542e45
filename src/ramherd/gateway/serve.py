"""`ramherd mcp serve`: the process of the gateway, from its settings to its end.

One gateway for each runtime directory. Its port stays the same from start to start, because the
settings of agents name it.
"""

import asyncio
import logging
import os
import resource
import signal
import socket
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from ramherd import __version__
from ramherd.act.gateway_process import ADDRESS, PORT
from ramherd.act.guard_process import Guard
from ramherd.act.pens.selection import Fleet, make_fleet
from ramherd.act.runtime_files import RuntimeFiles
from ramherd.act.systemd_scope import enter_scope
from ramherd.api.listener import Listener, make_tcp_socket
from ramherd.api.listener_server import ListenerServer
from ramherd.config.load import Config, make_policy
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.errors import NoService, RamherdError, StoreError, UsageError
from ramherd.core.model import Event
from ramherd.core.reasons import Reason
from ramherd.core.units import format_size
from ramherd.decide.budget import largest_budget_bytes
from ramherd.decide.governor.leaks import next_samples
from ramherd.gateway.control import SOCKET
from ramherd.gateway.control_app import ControlApp
from ramherd.gateway.gateway import Clients, Gateway, GatewaySettings
from ramherd.gateway.gateway_listener import GatewayListener, GatewayProtocol
from ramherd.gateway.lease import GatewayLease
from ramherd.gateway.life import ServerReading, choose_stop, explain_large
from ramherd.gateway.remains import clear_remains, end_remains, record_pens
from ramherd.gateway.server_process import GRACE_S
from ramherd.gateway.streamable_http import GatewayApp
from ramherd.gateway.upstream import Upstream
from ramherd.gateway.usage import UsageRecorder
from ramherd.gateway.verdicts import read_verdicts
from ramherd.measure.cgroups import read_trees
from ramherd.measure.machine import read_machine
from ramherd.show.reasons import render_reason
from ramherd.store.connect import open_store
from ramherd.store.events import add_event
from ramherd.store.mcp_servers import McpServer, read_servers
from ramherd.store.owner import OwnerLock
from ramherd.system.files import write_json
from ramherd.system.lock_file import LockFile, acquire_lock
from ramherd.system.procfs import read_own_id, read_rss_bytes
from ramherd.system.unix_socket import listen

LOCK = "mcp/gateway.lock"
# Below the ports that the kernel gives to outgoing connections, so that ours is free at each start.
FIRST_PORT, PORTS = 20_000, 12_000
TICK_S = 2.0
ACTIVATED_FD = 3
# 100 agents with 10 servers each have a stream and a connection for calls to each; all of them may
# start at the same moment.
MOST_CONNECTIONS, MOST_STRANGERS = 4096, 512
# Files that are no connections: pipes of servers, pens, the ledger.
SPARE_FILES = 256


def main(config: Config, port: int | None = None) -> int:
    runtime, state = runtime_dir(), state_dir()
    lock = acquire_lock(str(runtime / LOCK), wait=False)
    if lock is None:
        raise NoService("the MCP gateway runs already", hint="ramherd mcp status")
    if why_not := enter_scope(config["pen"]):
        print_line(f"no systemd scope: {why_not}")
    logging.disable()
    with closing(OwnerLock(runtime)) as owner_lock:
        process = GatewayProcess(config, runtime, state, owner_lock, lock)
        owner = owner_lock.owner.id
        guard = Guard(lambda: end_remains(runtime, owner, GRACE_S), f"{state}/keeper.err")
        asyncio.run(process.run(port))
        guard.dismiss()
    lock.close()
    return 0


def print_line(text: str) -> None:
    try:
        print(f"ramherd: {text}", file=sys.stderr, flush=True)
    except OSError:
        pass


class GatewayProcess:
    def __init__(
        self, config: Config, runtime: Path, state: Path, owner: OwnerLock, lock: LockFile
    ) -> None:
        self._config, self._state, self._owner, self._lock = config, state, owner, lock
        self._policy = make_policy(config)
        self._trees = read_trees()
        if left := clear_remains(runtime):
            print_line(f"ended {left} MCP servers that an earlier gateway left")
        self._fleet = self._make_fleet()
        self._files = RuntimeFiles(runtime, [owner.restore, self._restore])
        self._lease = GatewayLease(self._files, owner.owner, self._trees, self._policy)
        self._ended = asyncio.Event()
        self._recording: set[asyncio.Task[None]] = set()
        self._recorded: list[int] | None = None
        self.gateway = Gateway(
            Clients(lambda: (self._files.path, state)), self._read_servers,
            lambda: read_verdicts(state), read_settings(config, self._policy.pids_limit), state,
            self._fleet, print_line, self._record,
        )  # fmt: skip
        self._usage = UsageRecorder(state)
        self._servers: list[ListenerServer] = []
        self._port = 0

    def _make_fleet(self) -> Fleet:
        fleet, _why_weaker = make_fleet(self._config["pen"], self._trees, self._owner.owner.id)
        machine = read_machine(self._trees)
        fleet.set_limit(largest_budget_bytes(machine, self._policy))
        return fleet

    def _read_servers(self) -> dict[str, McpServer]:
        """Settings that cannot be read are reported, and the last ones stay."""
        try:
            return read_servers(self._config.servers, self._state)
        except RamherdError as error:
            print_line(str(error))
            return {}

    async def run(self, port: int | None) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._ended.set)
        listener = listen_on_port(choose_port(self._state, port), self.gateway.clients)
        assert listener.port is not None
        self._port = listener.port
        write_port(self._state, self._port)
        app = GatewayApp(self.gateway)
        control = ControlApp(self.gateway, self._describe, self._ended.set)
        self._servers = [
            ListenerServer(app, listener, GatewayProtocol, {}),
            ListenerServer(
                control, Listener(listen(self._files.path / SOCKET)), GatewayProtocol, {}
            ),
        ]
        serving = [
            asyncio.create_task(one.serve(sockets=[one.listener.socket])) for one in self._servers
        ]
        while not all(server.started for server in self._servers):
            await asyncio.sleep(0.005)
        self._write_address(self._files.path)
        await self._tick_until_ended()
        await self._end(serving)

    async def _tick_until_ended(self) -> None:
        while not self._ended.is_set():
            self._tick()
            try:
                await asyncio.wait_for(self._ended.wait(), TICK_S)
            except TimeoutError:
                continue

    def _tick(self) -> None:
        self._files.restore()
        self.gateway.drop_lost_sessions()
        self._fleet.scan()
        running = [one for one in self.gateway.every_upstream() if one.child is not None]
        for one in running:
            self._check_server(one)
        own_bytes = read_rss_bytes(os.getpid())
        self._lease.renew(own_bytes, [one.used_bytes for one in running])
        self._record()
        self._record_usage()
        self.gateway.forget_unused()

    def _record_usage(self, *, is_last: bool = False) -> None:
        self._usage.record(
            (id(one), one.launch.name, one.usage.calls, one.usage.used_s)
            for one in self.gateway.every_upstream()
        )
        self._usage.write(self.gateway.find_servers(), time.time(), is_last=is_last)

    def _check_server(self, upstream: Upstream) -> None:
        if (used := upstream.read_used()) is None:
            return
        limit = upstream.launch.memory_limit_bytes
        if used > limit and not self._fleet.kernel_limits and upstream.child is not None:
            sizes = f"{format_size(used)}, its limit is {format_size(limit)}"
            upstream.child.abort(f"it uses {sizes}")
            return
        if upstream.is_idle:
            upstream.samples = next_samples(upstream.samples, time.monotonic(), used)
        self._warn(upstream, used)
        idle_s = time.time() - upstream.usage.used_s if upstream.is_idle else None
        why = choose_stop(ServerReading(
            idle_s, used, limit, len(upstream.streams), upstream.is_private, upstream.idle_s,
            upstream.samples,
        ))  # fmt: skip
        if why is not None:
            print_line(f"{upstream.launch.name} stopped: {why}")
            upstream.stop_soon()

    def _warn(self, upstream: Upstream, used: int) -> None:
        """Once for each process: in the log, and as an event of the machine."""
        launch, child = upstream.launch, upstream.child
        reason = explain_large(launch.name, used, launch.memory_limit_bytes)
        if reason is None or child is None or child.is_reported:
            return
        child.is_reported = True
        print_line(render_reason(reason))
        recording = asyncio.create_task(asyncio.to_thread(record_event, self._state, reason))
        self._recording.add(recording)
        recording.add_done_callback(self._recording.discard)

    def _record(self) -> None:
        children = [one.child for one in self.gateway.every_upstream() if one.child is not None]
        pids = [child.pid for child in children]
        if pids != self._recorded:
            pens = [child.pen for child in children]
            found = [pen for pen in pens if pen is not None]
            record_pens(self._files.path, self._owner.owner.id, self._fleet, found)
            self._recorded = pids

    def _restore(self, runtime: Path) -> bool:
        """Listens again in a runtime directory that was removed or has changed."""
        if not self._port or (runtime / ADDRESS).exists():
            return False
        control = self._servers[1]
        asyncio.get_running_loop().create_task(control.replace_socket(runtime / SOCKET))
        self._write_address(runtime)
        return True

    def _write_address(self, runtime: Path) -> None:
        own = read_own_id()
        write_json(str(runtime / ADDRESS), {
            "pid": own.pid, "start_ticks": own.start_ticks, "port": self._port,
            "version": __version__,
        })  # fmt: skip

    def _describe(self) -> dict[str, Any]:
        return {
            "port": self._port, "version": __version__, "lease_bytes": self._lease.bytes,
            "pen": self._fleet.kind, "sessions": len(self.gateway.sessions),
        }  # fmt: skip

    async def _end(self, serving: "list[asyncio.Task[None]]") -> None:
        """Streams end at once: clients connect again to the next gateway."""
        (self._files.path / ADDRESS).unlink(missing_ok=True)
        self._record_usage(is_last=True)
        for server in self._servers:
            server.should_exit = True
        for session in list(self.gateway.sessions.values()):
            self.gateway.remove_session(session)
        await asyncio.gather(*(one.stop() for one in self.gateway.every_upstream()))
        await asyncio.gather(*serving, *self._recording)
        (self._files.path / SOCKET).unlink(missing_ok=True)
        self._fleet.remove()
        clear_remains(self._files.path)
        self._lease.close()


def record_event(state: Path, reason: Reason) -> None:
    """In a thread: the store may be locked for a moment. `ramherd events` shows it."""
    try:
        with closing(open_store(state)) as store:
            add_event(store, Event("alert", reason, time.time(), herd=""))
            store.commit()
    except StoreError as error:
        print_line(str(error))


def read_settings(config: Config, pids_limit: int) -> GatewaySettings:
    return GatewaySettings(
        config["mcp.memory_limit"], config["mcp.idle"], pids_limit, raise_file_limit()
    )


def raise_file_limit() -> tuple[int, int]:
    """Each connection is a file. Returns the limits as they were, for the servers."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    return before


def choose_most_connections() -> int:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft < 0 else min(MOST_CONNECTIONS, max(soft - SPARE_FILES, 16))


def choose_port(state: Path, asked: int | None) -> list[int]:
    """The ports to try, in this order."""
    if asked is not None:
        if not 0 <= asked < 65536:
            raise UsageError(f"--port {asked} is not a port", hint="0 to 65535")
        return [asked]
    first = FIRST_PORT + os.getuid() % PORTS
    try:
        return [int((state / PORT).read_text()), *range(first, first + 100)]
    except (OSError, ValueError):
        return list(range(first, first + 100))


def write_port(state: Path, port: int) -> None:
    path = state / PORT
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(f"{port}\n")


def listen_on_port(ports: list[int], clients: Clients) -> GatewayListener:
    made = find_activated_socket() or bind_port(ports)
    return GatewayListener(
        made, made.getsockname()[1], most_strangers=MOST_STRANGERS,
        most_connections=choose_most_connections(), find=clients.find,
    )  # fmt: skip


def find_activated_socket() -> socket.socket | None:
    """The socket that systemd listens on for us (`act/gateway_unit.py`): it starts us with the
    first connection, and passes the socket as descriptor 3.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
        return None
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
        os.environ.pop(name, None)
    made = socket.socket(fileno=ACTIVATED_FD)
    made.set_inheritable(False)
    return made


def bind_port(ports: list[int]) -> socket.socket:
    made = make_tcp_socket()
    failure: OSError | None = None
    for port in ports:
        try:
            made.bind(("127.0.0.1", port))
            made.listen(512)
            return made
        except OSError as error:
            failure = error
    made.close()
    why = failure.strerror if failure is not None else "no port was given"
    raise UsageError(f"cannot listen on 127.0.0.1:{ports[0]}: {why}", hint="pass --port 0")
