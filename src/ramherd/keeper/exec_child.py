"""The keeper's child between fork and exec: it joins its pen and becomes the run's program."""

from __future__ import annotations

import errno
import os
import resource
import signal

from ramherd.system.environ import encode, merge_layers, parse_words, read_all
from ramherd.system.files import write_control
from ramherd.system.own_process import AGENT_OOM_SCORE_ADJ, set_oom_score_adj

TYPE_CHECKING = False  # the keeper avoids the 1 MB that `typing` costs
if TYPE_CHECKING:
    from typing import Any

# Signals that Python ignores or the keeper handles: the program gets the defaults back.
TAKEN_SIGNALS = (
    signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP,
)  # fmt: skip

# Whose failure a step is, in the report.
OURS, THE_JOBS = "ours", "job"
# The machine's limit, or ours: no job has a limit of its own.
NO_DESCRIPTORS = (errno.ENFILE, errno.EMFILE)


class ChildEnds:
    """The child's ends of its pipes; `report` closes at exec or carries the error."""

    def __init__(self, stdin: int, out: int, err: int, report: int) -> None:
        self.stdin, self.out, self.err, self.report = stdin, out, err, report

    def close(self) -> None:
        for fd in (self.stdin, self.out, self.err, self.report):
            os.close(fd)


def exec_program(request: dict[str, Any], ends: ChildEnds, nofile: tuple[int, int]) -> None:
    """Never returns."""
    whose, step = OURS, "prepare a process"
    try:
        os.setsid()
        for number in TAKEN_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        resource.setrlimit(resource.RLIMIT_NOFILE, nofile)
        for path in request["join"]:
            step = f"join {path}"
            write_control(path, "0")
        set_oom_score_adj(AGENT_OOM_SCORE_ADJ)
        for fd, target in ((ends.stdin, 0), (ends.out, 1), (ends.err, 2)):
            os.dup2(fd, target)
        whose, step = THE_JOBS, f"enter {shown(request['cwd'])}"
        os.chdir(encode(request["cwd"]))
        step = "read what the job was given"
        # Read here and not in the keeper, whose memory then does not depend on their size.
        env = merge_layers(request["env"])
        argv = [encode(word) for word in request["argv"]]
        if request["argv_file"]:
            argv = parse_words(read_all(request["argv_file"]))
        step = f"start {shown(request['argv'][0])}"
        try:
            os.execvpe(argv[0], argv, env)
        except OSError as error:
            if error.errno == errno.E2BIG:
                step += f": {explain_too_big(argv, env)}"
            raise
    except OSError as error:
        if error.errno in NO_DESCRIPTORS:
            whose = OURS
        name = f" {error.filename}" if step.startswith("read") else ""
        text = f"{error.errno} {whose} cannot {step}{name}: {error.strerror}"
        os.write(ends.report, text.encode(errors="backslashreplace")[:4000])
    finally:
        os._exit(127)


def explain_too_big(argv: list[bytes], env: dict[bytes, bytes]) -> str:
    from ramherd.core import exec_limits  # noqa: PLC0415 - only after an error

    most = exec_limits.limit_of_stack(resource.getrlimit(resource.RLIMIT_STACK)[0])
    too_long = exec_limits.explain_length(argv) or exec_limits.explain_variables(env)
    return too_long or exec_limits.explain_sum(argv, env, most)


def shown(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."
