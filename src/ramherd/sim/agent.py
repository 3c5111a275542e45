"""A fake agent: it really allocates memory along a profile, and misbehaves on request.

Run it as `python -m ramherd.sim.agent`, or, with nothing installed, as `python -S -I
.../sim/agent.py`. It prints `ready` when the first sample is allocated and `done ...` at its end.
Every process that it starts ends by itself: tool calls with the agent, the helper after its
seconds.

Its own 12.3 MB RSS, of which 6.0 MB are anonymous (Python 3.11), count as part of the profile: it
cannot follow smaller samples.
"""

import argparse
import itertools
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence

if __name__ == "__main__" and not __package__:
    # Run as a file, without the package on the path.
    sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")))

from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.units import parse_size
from ramherd.sim.agent_state import WorkLog, acquire_lock
from ramherd.sim.allocator import ProfileAllocator
from ramherd.sim.profiles import Profile, flat, parse_traces, scaled, synthetic_at

_WHAT = "A fake agent: it really allocates along a memory profile, and misbehaves as asked."
# The interval at which a leak grows and progress is recorded between samples.
_STEP_S = 0.1
# A longer delay means that the agent was held or starved: no work was done in that time, and it is
# not made up.
_SLACK_S = 0.05
_FLOOD = (b"x" * 79 + b"\n") * 819


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_options(argv)
    if options.die_at_birth is not None:
        return int(options.die_at_birth)
    try:
        return run(options)
    except RamherdError as error:
        print(f"agent: {error}" + (f" ({error.hint})" if error.hint else ""), file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"agent: {error}", file=sys.stderr)
        return 1


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ramherd.sim.agent", description=_WHAT)
    _add_profile(parser)
    _add_trouble(parser)
    options = parser.parse_args(argv)
    sources = (options.flat is not None, options.synthetic is not None, options.traces is not None)
    if sum(sources) != 1 and options.die_at_birth is None:
        parser.error("one of --traces, --synthetic and --flat is needed")
    if options.flat and not options.seconds:
        parser.error("--flat needs --for")
    if options.fail_first and not options.state:
        parser.error("--fail-first needs --state, where attempts are counted")
    return options


def _add_profile(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--traces", metavar="FILE", help="trace file, one JSON object a line")
    add("--synthetic", metavar="SEED", type=int, help="built-in profiles of this seed")
    add("--index", metavar="N", type=_count, default=0, help="which profile, from 0")
    add("--flat", metavar="SIZE", type=_size, help="the same memory all the time")
    add("--for", dest="seconds", metavar="SECONDS", type=_factor, help="how long --flat lasts")
    add("--size", metavar="FACTOR", type=_factor, default=1.0, help="scale the memory")
    add("--time", metavar="FACTOR", type=_factor, default=1.0, help="scale the time")
    add("--state", metavar="FILE", default="", help="go on from here if RAMHERD_RESUMED=1")
    # The smallest loss of a resume in `simulate`.
    add("--checkpoint", metavar="SECONDS", type=float, default=10.0,
        help="trace seconds between points to go on from; 0: from each")  # fmt: skip
    add("--lock", metavar="FILE", help="exit with 99 if another copy holds this lock")


def _add_trouble(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--leak", metavar="SIZE", type=_size, default=0, help="per real second, never given back")
    add("--burst-in-child", action="store_true", help="a child holds what is above the plateau")
    add("--helper", metavar="SECONDS", type=_count, nargs="?", const=300,
        help="leave a process in a session of its own")  # fmt: skip
    add("--ignore-term", action="store_true")
    add("--flood", metavar="SIZE", type=_size, default=0, help="print that much after `ready`")
    add("--die-at-birth", metavar="CODE", type=_count, help="exit at once")
    add("--fail-first", metavar="N", type=_count, default=0, help="attempts that exit with 1")


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _factor(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is below zero")
    return value


def run(options: argparse.Namespace) -> int:
    if options.lock:
        acquire_lock(options.lock)
    profile = scaled(load_profile(options), options.size, options.time)
    catch_signals(ignore_term=options.ignore_term, agent_pid=os.getpid())
    # The backstop for a flood that no process reads. Far above any profile: frozen time counts.
    signal.alarm(min(3600 + 4 * int(profile.duration_s), 2**31 - 1))
    if options.helper:
        leave_helper(options.helper)
    resumed = os.environ.get("RAMHERD_RESUMED") == "1"
    work = WorkLog(options.state, checkpoint_s=options.checkpoint, resumed=resumed)
    return play(profile, work, options)


def load_profile(options: argparse.Namespace) -> Profile:
    if options.flat:
        return flat(options.flat, options.seconds)
    if options.synthetic is not None:
        return synthetic_at(options.synthetic, options.index)
    with open(options.traces, encoding="utf-8") as lines:
        profile = next(itertools.islice(parse_traces(lines), options.index, None), None)
    if profile is None:
        raise UsageError(
            f"{options.traces} has no trace {options.index}", hint="--index starts at 0"
        )
    return profile


def play(profile: Profile, work: WorkLog, options: argparse.Namespace) -> int:
    start_s = work.start_s * options.time
    leak_bytes = int(options.leak * max(0.0, profile.duration_s - start_s))
    allocator = ProfileAllocator(
        profile, leak_bytes=leak_bytes, burst_in_child=options.burst_in_child
    )
    try:
        allocator.hold(start_s, 0)
        print("ready", flush=True)
        if work.attempt <= options.fail_first:
            print(f"agent: attempt {work.attempt} fails as asked", file=sys.stderr)
            return 1
        flood(options.flood)
        for at_s in steps(profile, start_s):
            work.record(at_s / options.time)
            allocator.hold(at_s, int(options.leak * (at_s - start_s)))
        work.record(max(start_s, profile.duration_s) / options.time)
        work.done = True
    finally:
        allocator.close()
        work.save()
    print(done_line(profile, work, options.time), flush=True)
    return 0


def steps(profile: Profile, start_s: float) -> Iterator[float]:
    """Yield the time of each step when it is due; no sample is skipped, however late."""
    at_s, due = start_s, time.monotonic()
    while at_s < profile.duration_s:
        yield at_s
        next_s = min(at_s + _STEP_S, profile.t_s[profile.sample_at(at_s) + 1])
        due = wait_until(due + next_s - at_s)
        at_s = next_s


def wait_until(due: float) -> float:
    """Return the time from which the next step counts."""
    now = time.monotonic()
    if now > due + _SLACK_S:
        return now
    time.sleep(max(0.0, due - now))
    return due


def done_line(profile: Profile, work: WorkLog, time_factor: float) -> str:
    trace_s, progress = profile.duration_s / time_factor, work.progress
    redone_s = max(0.0, progress.executed_s - trace_s)
    return (
        f"done trace_s={trace_s:.1f} executed_s={progress.executed_s:.1f} "
        f"redone_s={redone_s:.1f} attempts={progress.attempts}"
    )


def flood(size_bytes: int) -> None:
    """Print exactly `size_bytes`, in lines, as fast as they are read."""
    while size_bytes > 0:
        # The tail of the block: it ends with a newline, so that `done` is on its own line.
        size_bytes -= os.write(1, _FLOOD[-size_bytes:])


def leave_helper(for_s: int) -> None:
    """Leave a process in its own session behind, and print its pid.

    It keeps this run's stdout and stderr open, as a server left in the background does.
    """
    middle = os.fork()
    if middle:
        os.waitpid(middle, 0)
        return
    try:
        os.setsid()
        if helper := os.fork():
            os.write(1, b"helper %d\n" % helper)
        else:
            os.execvp("sleep", ["sleep", str(for_s)])
    finally:
        os._exit(0)


def catch_signals(*, ignore_term: bool, agent_pid: int) -> None:
    def leave(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        if os.getpid() != agent_pid:
            os._exit(128 + number)  # a tool call: its parent cleans up
        raise SystemExit(128 + number)

    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if ignore_term else leave)


if __name__ == "__main__":
    sys.exit(main())
