"""`ramherd VERB ...`: finds the verb, and turns errors into one line and an exit code.

Imports only the module of the verb that is called, so that each call starts quickly.
"""

from __future__ import annotations

import errno
import io
import os
import sys

from ramherd import __version__
from ramherd.cli.verbs import COMPLETE, VERBS, WITH_COMMAND, WITHOUT_GATEWAY
from ramherd.core.errors import MAKE_ROOM, RamherdError, UsageError

TYPE_CHECKING = False  # `typing` costs 4 ms
if TYPE_CHECKING:
    from typing import Any, NoReturn

INTERRUPTED = 130
BUG = 70
# The machine refuses a request; the reader of the output has closed it (`| head`).
CANNOT, READER_GONE = 3, 1
HINTS = {
    errno.EMFILE: "raise the limit: ulimit -n 4096",
    errno.ENFILE: "ramherd doctor",
    errno.ENOSPC: MAKE_ROOM,
    errno.EDQUOT: MAKE_ROOM,
}


def main() -> None:
    use_utf8()
    open_standard_streams()
    try:
        code: object = call(sys.argv[1:])
    except SystemExit as ended:  # argparse, after --help or a wrong option
        code = ended.code
    sys.exit(finish_output(code))


def call(argv: list[str]) -> int:
    """Without a verb, prints the help."""
    try:
        if not argv or argv[0].startswith("-"):
            return call_without_verb(argv)
        return call_verb(argv)
    except KeyboardInterrupt:
        print_error("interrupted")
        return INTERRUPTED
    except Exception as error:
        code = explain(error)
        if "--debug" in argv:
            print_traceback()
        return code


def call_without_verb(argv: list[str]) -> int:
    if argv and argv[0] == "--version":
        print(f"ramherd {__version__}")
        return 0
    if argv and argv[0] not in ("-h", "--help", "--help-all"):
        refuse_verb(argv)
    from ramherd.cli.parser import render_overview  # noqa: PLC0415 - argparse: 15 ms

    print(render_overview(shows_all=argv == ["--help-all"]), end="")
    return 0


def call_verb(argv: list[str]) -> int:
    """Words after `--` are the user's command, not options of ours."""
    if argv[0] == COMPLETE:
        from ramherd.cli.complete import print_choices  # noqa: PLC0415

        return print_choices(argv[1:])
    if argv[0] not in VERBS:
        refuse_verb(argv)
    from ramherd.cli.parser import make_parser  # noqa: PLC0415

    at = argv.index("--") if "--" in argv else len(argv)
    parser = make_parser(argv[0])
    options, unknown = parser.parse_known_args(argv[1:at])
    options.command = argv[at + 1 :] if at < len(argv) else None
    if unknown:
        from ramherd.cli.mistakes import wrong_words  # noqa: PLC0415 - only for errors

        raise wrong_words(unknown, argv, parser)
    if options.command is not None and argv[0] not in WITH_COMMAND:
        raise UsageError(f"{argv[0]} takes no command", hint=f"ramherd {argv[0]} --help")
    if argv[0] not in WITHOUT_GATEWAY:
        start_gateway_if_enabled()
    return int(options.verb(options))


def start_gateway_if_enabled() -> None:
    """For the user's own sessions: without systemd, the first verb after a reboot starts it."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    if os.path.isdir(f"{base}/ramherd/mcp/clients"):
        from ramherd.act.gateway_start import start_if_enabled  # noqa: PLC0415 - seldom
        from ramherd.config.paths import runtime_path, state_path  # noqa: PLC0415

        start_if_enabled(state_path(), runtime_path())


def refuse_verb(argv: list[str]) -> NoReturn:
    from ramherd.cli.mistakes import wrong_verb  # noqa: PLC0415 - only for errors

    raise wrong_verb(argv)


def explain(error: Exception) -> int:
    """Prints one line; returns the exit code. A refusal by the system is not a defect of ours."""
    match error:
        case RamherdError():
            print_error(str(error), hint=error.hint)
            return error.exit_code
        case BrokenPipeError():
            drop_output()
            return READER_GONE
        case OSError() | MemoryError():
            return explain_refusal(error)
        case UnicodeEncodeError():
            # A name to look up in the store or in the service, which accept only UTF-8.
            print_error(f"{ascii(error.object)[:100]} is not UTF-8")
            return UsageError.exit_code
    print_error(
        f"a bug: {type(error).__name__}: {error}", hint="add --debug, and report its output"
    )
    return BUG


def use_utf8() -> None:
    """Arguments, file names and output are UTF-8 in every locale, so that the service always gets
    the same bytes. In the locales C and POSIX, Python does so by itself.
    """
    if sys.getfilesystemencoding() != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def explain_refusal(error: OSError | MemoryError) -> int:
    if isinstance(error, MemoryError):
        print_error("not enough memory", hint="see what uses it: ramherd ps")
        return CANNOT
    if is_output_broken():
        return finish_output(0)
    where = f"{printed(error.filename)}: " if error.filename is not None else ""
    print_error(f"{where}{error.strerror or error}", hint=HINTS.get(error.errno or 0, ""))
    return CANNOT


def is_output_broken() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


def finish_output(code: object) -> int:
    """Writes all output now: Python prints a traceback if it cannot write at exit."""
    number = code if isinstance(code, int) else 0 if code is None else UsageError.exit_code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        return number or READER_GONE
    except OSError as error:
        drop_output()
        print_error(f"cannot write to standard output: {error.strerror}")
        return number or CANNOT
    return number


def drop_output() -> None:
    """Python must not write to it at exit either."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def printed(name: object) -> str:
    text = os.fsdecode(name) if isinstance(name, str | bytes) else str(name)
    return text.encode(errors="backslashreplace").decode()


class ErrorStream(io.FileIO):
    """A line that cannot be written must not end a command: a full disk, a closed window."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def open_standard_streams() -> None:
    """A caller may have closed them (`>&-`): a file that we open must not take their number."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, mode, closefd=False))  # noqa: SIM115
    # Any name prints in any locale.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = with_buffer(sys.stdout)
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(ErrorStream(2, "w", closefd=False)),
        encoding=sys.stderr.encoding, errors="backslashreplace", line_buffering=True,
    )  # fmt: skip


def with_buffer(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """With PYTHONUNBUFFERED there is no buffer, and a line that could not be written would be lost:
    a full standard output would look like a full disk. Each line is still written at once.
    """
    if isinstance(stream.buffer, io.BufferedWriter):
        return stream
    raw = io.FileIO(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, line_buffering=True)


def print_traceback() -> None:
    """Imported only here: it takes 4 ms."""
    import traceback  # noqa: PLC0415

    traceback.print_exc()


def print_error(text: str, *, hint: str = "") -> None:
    print(f"ramherd: {text}" + (f"\n  hint: {hint}" if hint else ""), file=sys.stderr)


def print_warnings(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        print_error(warning)


def read_columns() -> int:
    """As `shutil.get_terminal_size`, which argparse would import for each option: 9 ms."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80
