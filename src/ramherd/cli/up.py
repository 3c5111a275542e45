"""`ramherd up`: the service, in the foreground, or installed for the user's session."""

import argparse
import sys

from ramherd.act.systemd_scope import enter_scope
from ramherd.cli.run import make_defaults, make_rules
from ramherd.config.keys import RUN_KEYS
from ramherd.config.load import add_flags, load_config
from ramherd.core.errors import UsageError
from ramherd.service.main import Options, serve
from ramherd.service.service_loop import Halt
from ramherd.show.event_lines import LineShow
from ramherd.show.view import Display
from ramherd.supervisor.run_herd import Rules

EPILOG = """\
examples:
  ramherd up                          until Ctrl-C: runs end, and their jobs go on at the next start
  ramherd up --drain                  Ctrl-C or TERM starts nothing new and waits for what runs
  ramherd up --leave                  TERM leaves runs to the next service: for an upgrade
  ramherd up --port 7475              also on 127.0.0.1, with the token in the runtime directory
  ramherd up --install                as a unit of the user's systemd (or launchd); --uninstall

signals: TERM and Ctrl-C end it, HUP reads the settings again
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    halt = parser.add_mutually_exclusive_group()
    halt.add_argument("--drain", action="store_true", help="at the end wait for what runs")
    halt.add_argument("--leave", action="store_true", help="at the end leave runs to the next")
    parser.add_argument("--port", type=int, metavar="PORT", help="listen on 127.0.0.1 too")
    parser.add_argument("--install", action="store_true", help="start it with the user's session")
    parser.add_argument("--uninstall", action="store_true", help="take that back")
    add_flags(parser, RUN_KEYS)
    parser.set_defaults(verb=up)


def up(options: argparse.Namespace) -> int:
    if options.install or options.uninstall:
        from ramherd.service.unit_file import install, uninstall  # noqa: PLC0415

        lines = install(own_flags()) if options.install else uninstall()
        print("\n".join(lines))
        return 0
    if options.port is not None and not 0 <= options.port < 65536:
        raise UsageError(f"--port {options.port} is not a port", hint="0 to 65535")
    config = load_config(options)
    if why_not := enter_scope(config["pen"]):
        print(f"ramherd: no scope of systemd: {why_not}", file=sys.stderr)
    for warning in config.warnings:
        print(f"ramherd: {warning}", file=sys.stderr)
    show = LineShow(sys.stdout)
    halt = Halt.DRAIN if options.drain else Halt.LEAVE if options.leave else Halt.STOP
    defaults = make_defaults(config)
    try:
        display = Display(show.event, show.update)
        serve(Options(lambda: rules_of(options), defaults, options.port, halt), display)
    finally:
        show.close()
    return 0


def rules_of(options: argparse.Namespace) -> Rules:
    return make_rules(load_config(options))


def own_flags() -> list[str]:
    """What the unit starts the service with: all that stood here but --install."""
    return [word for word in sys.argv[2:] if word != "--install"]
