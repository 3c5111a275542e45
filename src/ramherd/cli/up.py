"""`ramherd up`: the service, in the foreground, in the background, or installed for the user."""

import argparse
import json
import sys
from functools import partial

from ramherd.act.systemd_scope import enter_scope
from ramherd.cli.main import print_warnings
from ramherd.cli.run import make_defaults, make_rules
from ramherd.config.keys import RUN_KEYS, SERVICE_KEYS
from ramherd.config.load import add_flags, given_flags, load_config
from ramherd.config.paths import state_dir
from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.model import Event
from ramherd.service.main import Options, serve
from ramherd.service.service_lock import read_service_pid
from ramherd.service.service_loop import Halt
from ramherd.show.event_lines import LineShow
from ramherd.show.view import Display
from ramherd.supervisor.run_herd import Rules

EPILOG = """\
examples:
  ramherd up                          until Ctrl-C; its runs continue at the next start
  ramherd up -d                       in the background; returns when the service answers
  ramherd up --drain                  at Ctrl-C or TERM, wait for running jobs
  ramherd up --leave                  leave runs to the next service: for an upgrade
  ramherd up --port 7475              also on 127.0.0.1, with a token (docs/service.md)
  ramherd up --install                now and at each login, as a systemd or launchd unit
  ramherd up --uninstall              stop it, and remove the unit

signals: TERM and Ctrl-C end it, HUP reads the settings again
"""

UP_KEYS = (*RUN_KEYS, *SERVICE_KEYS)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    halt = parser.add_mutually_exclusive_group()
    halt.add_argument("--drain", action="store_true", help="when stopped, wait for running jobs")
    halt.add_argument("--leave", action="store_true", help="when stopped, leave runs running")
    parser.add_argument("--port", type=int, metavar="PORT", help="listen on 127.0.0.1 too")
    add = parser.add_argument
    add("-d", "--detach", action="store_true", help="start it in the background, and return")
    add("--install", action="store_true", help="start it now, and at each login")
    add("--uninstall", action="store_true", help="stop it, and no longer start it at login")
    what = "events as JSON lines; with -d and --install one object with the pid or the unit"
    add("--json", action="store_true", help=what)
    add_flags(parser, UP_KEYS)
    parser.set_defaults(verb=up)


def up(options: argparse.Namespace) -> int:
    if options.port is not None and not 0 <= options.port < 65536:
        raise UsageError(f"--port {options.port} is not a port", hint="0 to 65535")
    if sum((options.detach, options.install, options.uninstall)) > 1:
        raise UsageError(
            "-d, --install and --uninstall exclude each other", hint="ramherd up --help"
        )
    if options.uninstall:
        return uninstall_unit(options)
    config = load_config(options)
    print_warnings(config.warnings)
    if options.install:
        return install_unit(options)
    if options.detach:
        return detach(options)
    if why_not := enter_scope(config["pen"]):
        print(f"ramherd: no systemd scope: {why_not}", file=sys.stderr)
    show = LineShow(sys.stdout)
    halt = Halt.DRAIN if options.drain else Halt.LEAVE if options.leave else Halt.STOP
    defaults = make_defaults(config)
    try:
        event = partial(print_event, show) if options.json else show.event
        display = Display(event, show.update)
        serve(Options(lambda: rules_of(options), defaults, options.port, halt), display)
    finally:
        show.close()
    return 0


def rules_of(options: argparse.Namespace) -> Rules:
    return make_rules(load_config(options))


def own_flags(options: argparse.Namespace) -> list[str]:
    """The flags for a service that this call starts."""
    words = [f"--{name}" for name in ("drain", "leave") if getattr(options, name)]
    words += ["--port", str(options.port)] if options.port is not None else []
    return words + given_flags(options, UP_KEYS)


def print_event(show: LineShow, event: Event, name: str) -> None:
    told = {
        "v": 1, "at_s": event.at_s, "kind": event.kind, "herd": event.herd, "job": event.job,
        "run": event.run, "name": name, "reason": event.reason.as_json(),
    }  # fmt: skip
    show.print(json.dumps(told))


def is_answering() -> bool:
    """Whether the API replies to a request."""
    from ramherd.client.client import Client  # noqa: PLC0415 - 4 MB

    try:
        Client().herds(1)
    except RamherdError:
        return False
    return True


def detach(options: argparse.Namespace) -> int:
    """A service that is already running is a success."""
    from ramherd.service.background import LOG, start_in_background  # noqa: PLC0415 - seldom

    state = state_dir()
    is_new = not is_answering()
    if is_new:
        pid, log = start_in_background(own_flags(options), state, is_answering)
    else:
        pid, log = read_service_pid(state), state / LOG
    if options.json:
        print(json.dumps({"pid": pid, "started": is_new, "log": str(log)}))
    elif not is_new:
        print(f"the service is running already (pid {pid})")
    else:
        print(f"the service is running (pid {pid}); its log is {log}")
        print(f"next: ramherd submit jobs.toml; to stop it: kill {pid}")
    return 0


def install_unit(options: argparse.Namespace) -> int:
    from ramherd.service.unit_file import install  # noqa: PLC0415 - seldom

    found = install(own_flags(options), is_answering)
    if options.json:
        print(json.dumps(found.as_json()))
        return 0
    print(f"wrote {found.path}; the service is running, and starts at each login")
    print(f"its log: {found.log}; to undo it: {found.undo}")
    if sys.platform != "darwin":
        print("to run it while you are not logged in: loginctl enable-linger")
    return 0


def uninstall_unit(options: argparse.Namespace) -> int:
    from ramherd.service.unit_file import uninstall  # noqa: PLC0415 - seldom

    path = uninstall()
    removed = f"the service is stopped, and {path} is removed"
    print(json.dumps({"removed": str(path)}) if options.json else removed)
    return 0
