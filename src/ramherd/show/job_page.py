"""The page of one job: a label in front of each entry."""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from textwrap import wrap
from typing import Any, NamedTuple

from ramherd.core.reasons import reason_from_json
from ramherd.core.units import count, format_duration, format_size
from ramherd.show.event_lines import printable
from ramherd.show.reasons import render_reason
from ramherd.show.result_lines import (
    is_mergeable,
    render_address,
    render_allow,
    render_call,
    render_changes,
    render_left_out,
    render_spent,
    state_of,
)

LABEL_WIDTH = 11
# Lines of a prompt and of an answer without `--full`.
PROMPT_LINES, ANSWER_LINES = 6, 20
# Only the last runs of a job with very many runs are shown.
RUNS_SHOWN = 20


class JobLogs(NamedTuple):
    """Where the output of the last run is; `is_there` is false after it was removed."""

    path: str = ""
    is_there: bool = False


def render_job(job: Mapping[str, Any], logs: JobLogs, width: int, *, full: bool) -> list[str]:
    """`job` is the object of the API."""
    return [line for label, text in describe(job, logs, full=full)
            for line in render_entry(label, text, width)]  # fmt: skip


def render_entry(label: str, text: str, width: int) -> list[str]:
    """The first line begins with its label; long lines are wrapped, except commands and paths."""
    first, rest = f"{label:<{LABEL_WIDTH}}", " " * LABEL_WIDTH
    if label in UNWRAPPED:
        parts = text.split("\n")
    else:
        most = max(width - LABEL_WIDTH, 20)
        split = (wrap_line(line, most) for line in text.expandtabs(4).split("\n"))
        parts = [part for lines in split for part in lines]
    return [
        printable((first if at == 0 else rest) + part).rstrip() for at, part in enumerate(parts)
    ]


UNWRAPPED = ("continue", "log", "allow", "worktree", "branch", "next", "")


def wrap_line(line: str, width: int) -> list[str]:
    """A path stays whole: it may be part of a command."""
    return wrap(line, width, break_on_hyphens=False, break_long_words=False) or [""]


def describe(job: Mapping[str, Any], logs: JobLogs, *, full: bool) -> Iterator[tuple[str, str]]:
    name = render_address({**job, "job": job["name"]})
    number = "" if job.get("number") is None else f"{job['number']}  "
    yield "job", f"{number}{job['name']} ({job['id']} of herd {job['herd']})"
    yield "state", f"{state_of(job)}: {render_reason(reason_from_json(job['reason']))}"
    if job.get("error"):
        yield "error", job["error"]
    yield from describe_task(job, full=full)
    if job.get("result"):
        yield "answer", clip_lines(job["result"].strip(), None if full else ANSWER_LINES)
    yield from describe_denied(job, name)
    yield from describe_worktree(job, name)
    if spent := render_spent(job):
        tokens = f" ({job['tokens_in']} tokens in, {job['tokens_out']} out)"
        yield "spent", spent + (tokens if job.get("tokens_in") else "")
    if job["runs"]:
        yield "runs", "\n".join(render_runs(job["runs"]))
    if job.get("session"):
        yield "session", job["session"]
    if job.get("resume"):
        yield "continue", job["resume"]
    if logs.path:
        removed = "" if logs.is_there else " (removed by ramherd prune or log_total)"
        yield "log", f"{logs.path}{removed}"
    yield "next", f"ramherd logs {name}" if logs.is_there else f"ramherd events --job {name}"


def describe_task(job: Mapping[str, Any], *, full: bool) -> Iterator[tuple[str, str]]:
    """The task of the job."""
    if job.get("agent"):
        yield "agent", f"{job['agent']}, model {job['model']}" if job.get("model") else job["agent"]
    if job.get("prompt"):
        yield "prompt", clip_lines(job["prompt"].strip(), None if full else PROMPT_LINES)
    elif argv := job.get("argv"):
        is_shell = len(argv) == 3 and argv[:2] == ["/bin/sh", "-c"]
        yield "command", argv[2] if is_shell else " ".join(map(quote, argv))
    if job.get("cwd"):
        yield "directory", job["cwd"]
    if job.get("after"):
        yield "after", ", ".join(job["after"])
    if job.get("memory_bytes"):
        yield "memory", f"{format_size(job['memory_bytes'])} reserved from its start"
    if job.get("priority"):
        yield "priority", str(job["priority"])


def describe_denied(job: Mapping[str, Any], name: str) -> Iterator[tuple[str, str]]:
    if denied := job.get("denied"):
        yield "denied", "\n".join(map(render_call, denied))
        yield "allow", render_allow(denied, name).removeprefix("allow it: ")


def describe_worktree(job: Mapping[str, Any], name: str) -> Iterator[tuple[str, str]]:
    if changes := render_changes(job):
        yield "changes", changes
    if job.get("files_changed") and job.get("branch"):
        then = "merge" if is_mergeable(job) else "drop"
        yield "", f"ramherd diff {name}; ramherd {then} {name}"
    if job.get("worktree"):
        yield "worktree", job["worktree"]
    if job.get("worktree_note"):
        yield "", job["worktree_note"]
    if job.get("left_out"):
        yield "left out", render_left_out(job["left_out"])


def render_runs(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if len(runs) > RUNS_SHOWN:
        yield f"({len(runs) - RUNS_SHOWN} earlier ones)"
    for run in runs[-RUNS_SHOWN:]:
        yield render_run(run)


def render_run(run: Mapping[str, Any]) -> str:
    """`2  preempted  after 1m10s, peak 340 MiB: held for 30s, and max_hold is 30s`."""
    if run["ended_s"] is None:
        return f"{run['attempt']}  running"
    took = format_duration(run["ended_s"] - run["started_s"])
    peak = f", peak {format_size(run['peak_bytes'])}" if run["peak_bytes"] else ""
    why = f": {render_reason(reason_from_json(run['reason']))}" if run["reason"] else ""
    return f"{run['attempt']}  {run['end']} after {took}{peak}{why}"


def clip_lines(text: str, most: int | None) -> str:
    lines = text.split("\n")
    if most is None or len(lines) <= most:
        return text
    return "\n".join([*lines[:most], f"... ({count(len(lines) - most, 'more line')}: --full)"])
