"""`ramherd mcp`: MCP servers that agents share, through the gateway."""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ramherd.act.gateway_process import GatewayAddress, ensure_gateway, read_gateway
from ramherd.cli.main import read_columns
from ramherd.config.keys import MCP_KEYS
from ramherd.config.load import Config, add_flags, load_config
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.errors import UsageError
from ramherd.core.values import nearest
from ramherd.store.mcp_servers import McpServer, read_registry, read_servers, write_registry
from ramherd.system.user_files import read_cwd

EPILOG = """\
examples:
  ramherd mcp import               take over the servers of your agents
  ramherd mcp list                 each server, how it is shared, and why
  ramherd mcp status               clients, memory and calls; what sharing saves
  ramherd mcp enable claude        your own sessions use the shared servers
  ramherd mcp disable claude       restore the settings of Claude Code
  ramherd mcp probe NAME           test whether two agents can share a server
  ramherd run --agent claude --mcp context7,memory prompts.txt

docs/mcp.md explains the share modes, and what sharing breaks.
"""
PROBE_EPILOG = """\
examples:
  ramherd mcp probe time
  ramherd mcp probe notes --tool search='{"query": "x"}' --tool list

Two clients make the same calls, on one process and on a process each. Without
--tool, only tools that declare readOnlyHint are called. The result is stored,
and decides how the server is shared, unless the settings have share = "MODE".
"""
AGENTS = ("claude", "codex")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    verbs = parser.add_subparsers(
        prog="ramherd mcp", title="what to do", required=True, metavar="WHAT"
    )

    def add(what: str, verb: Callable[[argparse.Namespace], int], help_: str) -> Any:
        one = verbs.add_parser(what, help=help_)
        one.add_argument("--json", action="store_true", help="one JSON object on stdout")
        one.set_defaults(verb=verb)
        return one

    one = add("import", import_servers, "take over the servers in the settings of your agents")
    one.add_argument("--dry-run", action="store_true", help="change nothing")
    add("list", list_servers, "list the servers, how each is shared, and why")
    add("status", status, "print clients, memory, calls and savings")
    for what, verb, help_ in (
        ("enable", enable, "let your own sessions use the shared servers"),
        ("disable", disable, "restore the settings of an agent"),
    ):
        one = add(what, verb, help_)
        one.add_argument("agent", choices=AGENTS, help="agent whose settings are changed")
    for what, verb, help_ in (
        ("restart", restart, "end the processes of a server; its next call starts another"),
        ("remove", remove, "forget an imported server"),
    ):
        one = add(what, verb, help_)
        one.add_argument("name", metavar="SERVER", help="name of the server")
    one = add("probe", probe, "test whether two clients can share a server")
    one.epilog = PROBE_EPILOG
    one.add_argument("name", metavar="SERVER", help="name of the server")
    one.add_argument(
        "--tool", action="append", default=[], metavar="NAME[=JSON]", help="a tool to call"
    )
    one = add("start", start, "start the gateway in the background")
    one.add_argument("--quiet", action="store_true", help="print nothing")
    one = add("serve", serve, "run the gateway in the foreground")
    one.add_argument("--port", type=int, metavar="PORT", help="listen on this port")
    add_flags(one, MCP_KEYS)
    add("stop", stop, "end the gateway and its servers")


def load_servers(config: Config) -> dict[str, McpServer]:
    return read_servers(config.servers, state_dir())


def find_server(name: str) -> McpServer:
    known = load_servers(load_config())
    if name not in known:
        hint = nearest(name, known) if known else "ramherd mcp import"
        raise UsageError(f"no MCP server is named {name!r}", hint=hint)
    return known[name]


def import_servers(options: argparse.Namespace) -> int:
    from ramherd.agents.configured_servers import SOURCES, OwnServer, read_own_servers  # noqa: PLC0415
    from ramherd.gateway.import_servers import merge_servers  # noqa: PLC0415

    cwd = read_cwd()
    found = [one for agent in SOURCES for one in read_own_servers(agent, os.environ, cwd)]
    errors = [str(one) for one in found if isinstance(one, UsageError)]
    own = [one for one in found if isinstance(one, OwnServer)]
    servers, results = merge_servers(read_registry(state_dir()), own)
    if not options.dry_run:
        write_registry(state_dir(), servers)
    if options.json:
        told = {"servers": [one.as_json() for one in results], "errors": errors}
        print(json.dumps(told))
        return 0
    from ramherd.gateway.render_import import render_import  # noqa: PLC0415

    print("\n".join(render_import(results, errors, is_dry_run=options.dry_run)))
    return 0


def read_status() -> tuple[dict[str, Any] | None, list[Mapping[str, Any]]]:
    """The gateway's own report, and its servers. Without a gateway: what the settings say."""
    from ramherd.gateway.control import ask_gateway  # noqa: PLC0415
    from ramherd.gateway.sharing import choose_share  # noqa: PLC0415
    from ramherd.gateway.usage import read_usage  # noqa: PLC0415
    from ramherd.gateway.verdicts import read_verdicts  # noqa: PLC0415

    runtime, state = runtime_dir(), state_dir()
    known, usage = load_servers(load_config()), read_usage(state)
    if read_gateway(runtime) is not None:
        report = ask_gateway(runtime, "/servers")
        return report, [with_past(one, usage.get(one["name"], {})) for one in report["servers"]]
    verdicts = read_verdicts(state)
    servers: list[Mapping[str, Any]] = []
    for name, server in known.items():
        choice = choose_share(server, verdicts)
        servers.append(
            {
                "name": name, "share": choice.mode, "reason": choice.reason, "state": "idle",
                "clients": 0, "calls": 0, "used_bytes": 0, **usage.get(name, {}),
            }
        )  # fmt: skip
    return None, servers


def with_past(server: Mapping[str, Any], past: Mapping[str, Any]) -> Mapping[str, Any]:
    """The gateway knows only what happened since it was started."""
    last = [at for at in (server["last_used_at_s"], past.get("last_used_at_s")) if at is not None]
    return {**past, **server, "last_used_at_s": max(last, default=None)}


def list_servers(options: argparse.Namespace) -> int:
    from ramherd.gateway.render_status import make_rows, render_list  # noqa: PLC0415

    _gateway, servers = read_status()
    rows = make_rows(servers, time.time())
    if options.json:
        print(json.dumps({"servers": [row.as_json() for row in rows]}))
    else:
        print("\n".join(render_list(rows, read_columns())))
    return 0


def status(options: argparse.Namespace) -> int:
    from ramherd.gateway.render_status import make_rows, render_status  # noqa: PLC0415

    gateway, servers = read_status()
    now_s = time.time()
    rows = make_rows(servers, now_s)
    if options.json:
        own = None
        if gateway is not None:
            own = {key: value for key, value in gateway.items() if key != "servers"}
        print(json.dumps({"gateway": own, "servers": [row.as_json() for row in rows]}))
    else:
        print("\n".join(render_status(gateway, rows, read_columns(), now_s)))
    return 0


def enable(options: argparse.Namespace) -> int:
    from ramherd.gateway.enable_agent import enable_agent  # noqa: PLC0415

    enabled = enable_agent(options.agent, os.environ, state_dir())
    if options.json:
        print(json.dumps(enabled.as_json()))
        return 0
    if not enabled.names:
        print(f"{enabled.path} has no servers that the gateway can start; nothing was changed")
        return 0
    if not enabled.is_changed:
        print(f"{enabled.path} uses the gateway already: {', '.join(enabled.names)}")
        return 0
    print(f"{enabled.path} uses the gateway for {', '.join(enabled.names)}")
    print(f"new sessions share these servers; to undo it: ramherd mcp disable {options.agent}")
    if enabled.unit is not None:
        print(f"systemd starts the gateway with the first connection: {enabled.unit}")
    else:
        print("there is no systemd here: `ramherd mcp start` starts the gateway after a reboot")
    return 0


def disable(options: argparse.Namespace) -> int:
    from ramherd.gateway.enable_agent import disable_agent  # noqa: PLC0415

    path, is_changed = disable_agent(options.agent, os.environ, state_dir())
    if options.json:
        print(json.dumps({"path": str(path), "changed": is_changed}))
    elif is_changed:
        print(f"{path} is restored; new sessions start their own servers")
    else:
        print(f"{path} does not use the gateway")
    return 0


def restart(options: argparse.Namespace) -> int:
    from ramherd.gateway.control import ask_gateway  # noqa: PLC0415

    name = find_server(options.name).name
    ended = 0
    if read_gateway(runtime_dir()) is not None:
        ended = ask_gateway(runtime_dir(), f"/restart/{name}", method="POST")["restarted"]
    if options.json:
        print(json.dumps({"server": name, "ended": ended}))
    elif ended:
        what = "process" if ended == 1 else "processes"
        print(f"{name}: {ended} {what} ended; the next call starts the server again")
    else:
        print(f"{name} was not running; the next call starts it")
    return 0


def remove(options: argparse.Namespace) -> int:
    registry = read_registry(state_dir())
    if options.name not in registry:
        find_server(options.name)
        raise UsageError(
            f"{options.name} is in the settings, not imported",
            hint=f"remove [mcp.servers.{options.name}] from your config.toml",
        )
    del registry[options.name]
    write_registry(state_dir(), registry)
    print(json.dumps({"removed": options.name}) if options.json else f"removed {options.name}")
    return 0


def probe(options: argparse.Namespace) -> int:
    from ramherd.gateway.probe import probe_server  # noqa: PLC0415 - asyncio
    from ramherd.gateway.resolve_command import resolve_command  # noqa: PLC0415
    from ramherd.gateway.sharing import filter_environment  # noqa: PLC0415
    from ramherd.gateway.verdicts import write_verdict  # noqa: PLC0415

    server = find_server(options.name)
    env = {**filter_environment(os.environ), **server.env}
    argv = resolve_command(server.command, env, Path.home())
    asked = dict(map(parse_tool, options.tool))
    verdict = asyncio.run(probe_server(argv, env, server.cwd or read_cwd(), asked))
    told = {**verdict.as_json(), "at_s": time.time()}
    write_verdict(state_dir(), server.name, told)
    if options.json:
        print(json.dumps({"server": server.name, **told}))
        return 0
    print(f"{server.name}: {verdict.mode}: {verdict.reason}")
    if server.share is not None:
        print(f"the settings say share = {server.share!r}, which is used instead")
    return 0


def parse_tool(text: str) -> tuple[str, Mapping[str, Any] | None]:
    name, equals, given = text.partition("=")
    if not equals:
        return name, None
    try:
        args = json.loads(given)
    except ValueError:
        args = None
    if not isinstance(args, dict):
        raise UsageError(
            f"--tool {name}: {given!r} is not a JSON object", hint=f"--tool '{name}={{}}'"
        )
    return name, args


def start(options: argparse.Namespace) -> int:
    was_running = read_gateway(runtime_dir()) is not None
    address: GatewayAddress = ensure_gateway()
    if options.json:
        told = {"pid": address.proc.pid, "port": address.port, "started": not was_running}
        print(json.dumps(told))
    elif not options.quiet:
        what = "runs already" if was_running else "runs"
        print(f"the gateway {what}: pid {address.proc.pid}, 127.0.0.1:{address.port}")
    return 0


def serve(options: argparse.Namespace) -> int:
    from ramherd.gateway.serve import main  # noqa: PLC0415 - uvicorn

    if options.json:
        print("ramherd: serve prints no JSON", file=sys.stderr)
    return main(load_config(options), options.port)


def stop(options: argparse.Namespace) -> int:
    from ramherd.gateway.control import ask_gateway  # noqa: PLC0415

    is_running = read_gateway(runtime_dir()) is not None
    if is_running:
        ask_gateway(runtime_dir(), "/stop", method="POST")
    if options.json:
        print(json.dumps({"stopped": is_running}))
    else:
        print("the gateway is stopped" if is_running else "the gateway does not run")
    return 0
