"""Jobs from files and lines: TOML, JSONL, or one command for each line of standard input.

All that can be wrong is found here, before anything starts, and said in one line that names
the file, the job and the key.
"""

import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ramherd.config.text import decode, read_bytes
from ramherd.core.agent_names import WARM_AGENTS
from ramherd.core.errors import UsageError
from ramherd.core.model import Brief, Job
from ramherd.core.units import format_size, parse_duration, parse_size, shown
from ramherd.core.values import (
    as_agent,
    as_count,
    as_integer,
    as_name,
    as_switch,
    as_text,
    as_words,
    nearest,
)
from ramherd.jobs.schema import (
    OF_AGENTS,
    OF_COMMANDS,
    Reader,
    as_amount,
    as_command,
    as_directory,
    as_environment,
    as_names,
    as_prompt,
    as_reuse,
)
from ramherd.system.ids import new_id

# The agent that is none.
COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Defaults:
    """What jobs that do not say otherwise get."""

    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    timeout_s: float | None = None
    retries: int = 0
    cwd: str | None = None
    agent: str | None = None
    model: str | None = None
    fallback_model: str | None = None
    skip_permissions: bool = False
    agent_program: str | None = None
    agent_args: Sequence[str] | None = None
    worktree: bool | None = None
    # What the agents of a herd may cost together, where it does not say.
    max_cost_usd: float | None = None
    reuse: int = 0
    # Where programs are looked for; if not given, where we look ourselves.
    path: str | None = None
    profiles: "Mapping[str, Defaults]" = field(default_factory=dict)

    def of_profile(self, name: Any) -> "Defaults":
        if as_name(name) in self.profiles:
            return self.profiles[name]
        known = nearest(name, self.profiles) if self.profiles else ""
        raise UsageError(
            f"no profile is named {name!r}", hint=known or f"add [profile.{name}] to ramherd.toml"
        )


def read_job_file(path: str, herd: str, defaults: Defaults, stdin: bytes | None) -> list[Job]:
    """`-` is standard input. `.jsonl` and what starts with `{` is JSONL, the rest TOML."""
    where = "standard input" if path == "-" else path
    text = decode(stdin or b"" if path == "-" else read_bytes(path), where)
    lines = path.endswith((".jsonl", ".ndjson")) or text.lstrip().startswith("{")
    tables = parse_jsonl(text, where) if lines else parse_toml(text, where)
    return make_jobs(tables, where, herd, defaults)


def jobs_from_lines(argv: Sequence[str], data: bytes, herd: str, defaults: Defaults) -> list[Job]:
    """One job for each line that is not blank; `{}` is replaced, or the line comes last."""
    lines = [line for line in split_lines(decode(data, "standard input")) if line.strip()]
    whole = any("{}" in word for word in argv)
    tables = [
        {
            "name": line_name(number, line),
            "command": [w.replace("{}", line) for w in argv] if whole else [*argv, line],
        }
        for number, line in enumerate(lines, 1)
    ]
    return make_jobs(tables, "standard input", herd, defaults)


def jobs_from_prompts(prompts: Iterable[str], herd: str, defaults: Defaults) -> list[Job]:
    """One job for each prompt that is not blank."""
    tables = [
        {"name": line_name(number, prompt), "prompt": prompt}
        for number, prompt in enumerate((text for text in prompts if text.strip()), 1)
    ]
    return make_jobs(tables, "prompts", herd, defaults)


def read_prompts(path: str) -> list[str]:
    """One a line."""
    return split_lines(decode(read_bytes(path), path))


def line_name(number: int, line: str) -> str:
    """Short, unique, and still telling: `3-fix-the-lint-errors`."""
    words = "".join(c if c.isalnum() or c in "._" else " " for c in line).split()
    return "-".join([str(number), *words])[:40].rstrip("-")


def split_lines(text: str) -> list[str]:
    """At newlines only: str.splitlines would split JSON texts and prompts at U+2028 too."""
    return [line.removesuffix("\r") for line in text.split("\n")]


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def parse_toml(text: str, where: str) -> list[Any]:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers and nestings without end
        raise UsageError(f"{where} is not TOML: {one_line(error)}") from None
    for key in document:
        if key != "job":
            raise UsageError(
                f"{where} has an unknown key {shown(key)}", hint="jobs are [[job]] tables"
            )
    tables = document.get("job", [])
    if not isinstance(tables, list):
        raise UsageError(f"{where}: 'job' is not a list of tables", hint="write [[job]]")
    return tables


def parse_jsonl(text: str, where: str) -> list[Any]:
    tables = []
    for number, line in enumerate(split_lines(text), 1):
        if line.strip():
            try:
                tables.append(json.loads(line))
            except (ValueError, RecursionError) as error:  # also numbers without end
                message = f"{where}, line {number} is not JSON: {one_line(error)}"
                raise UsageError(message) from None
    return tables


def make_jobs(tables: Iterable[Any], where: str, herd: str, defaults: Defaults) -> list[Job]:
    jobs = [
        make_job(table, f"{where}: job {number}", number, herd, defaults)
        for number, table in enumerate(tables, 1)
    ]
    if not jobs:
        raise UsageError(f"no jobs in {where}", hint="see `ramherd run --help` for the formats")
    check_names(jobs, where)
    check_after(jobs, where)
    return jobs


def make_job(table: Any, where: str, number: int, herd: str, defaults: Defaults) -> Job:
    if not isinstance(table, dict):
        raise UsageError(f"{where} is not an object with keys")
    reader = Reader(table, where)
    name = reader.get("name", as_name, f"job-{number}")
    reader.where = f"{where} ({name})"
    reader.check_keys()
    defaults = reader.get("profile", defaults.of_profile, defaults)
    cwd = reader.get("cwd", as_directory, None) or defaults.cwd or own_directory()
    env: dict[str, str] = reader.get("env", as_environment, {})
    places = {} if defaults.path is None else {"PATH": defaults.path}
    limit = reader.get("memory_limit", parse_size, defaults.memory_limit_bytes)
    memory = reader.get("memory", parse_size, defaults.memory_bytes)
    if limit is not None and memory is not None and memory > limit:
        raise UsageError(
            f"{reader.where}: memory {format_size(memory)} is above "
            f"memory_limit {format_size(limit)}"
        )
    brief = make_brief(reader, defaults)
    return Job(
        id=new_id(),
        herd=herd,
        name=name,
        seq=number,
        argv=()
        if brief is not None
        else reader.need("command", lambda value: as_command(value, cwd, places | env)),
        cwd=cwd,
        env=env,
        stdin=reader.get("stdin", as_text, None),
        priority=reader.get("priority", as_integer, 0),
        after=reader.get("after", as_names, ()),
        label=reader.get("label", as_text, ""),
        memory_bytes=memory or 0,
        memory_limit_bytes=limit,
        timeout_s=reader.get("timeout", parse_duration, defaults.timeout_s),
        retries=reader.get("retries", as_count, defaults.retries),
        resume_argv=reader.get("resume_command", lambda value: as_command(value, cwd, env), ()),
        brief=brief,
    )


def make_brief(reader: Reader, defaults: Defaults) -> Brief | None:
    """None for a command. A setting of an agent does not make one of a job with a command."""
    table = reader.table
    agent = reader.get("agent", as_agent, defaults.agent)
    named = table.get("agent", COMMAND) != COMMAND
    if agent == COMMAND or ("command" in table and not named) or not (named or "prompt" in table):
        refuse_keys(reader, OF_AGENTS, "needs an agent")
        return None
    refuse_keys(reader, ("command", *OF_COMMANDS), "does not go with an agent")
    if agent is None:
        agent = reader.need("agent", as_agent)
    return Brief(
        agent=agent,
        prompt=reader.need("prompt", as_prompt),
        model=reader.get("model", as_name, defaults.model or ""),
        fallback_model=reader.get("fallback_model", as_name, defaults.fallback_model or ""),
        max_cost_usd=reader.get("max_cost_usd", as_amount, None),
        skip_permissions=reader.get("skip_permissions", as_switch, defaults.skip_permissions),
        program=reader.get("agent_program", as_text, defaults.agent_program or ""),
        args=tuple(reader.get("agent_args", as_words, defaults.agent_args or ())),
        worktree=reader.get("worktree", as_switch, defaults.worktree),
        reuse=reader.get(
            "reuse", lambda value: as_reuse(value, agent), usual_reuse(defaults, agent)
        ),
    )


def usual_reuse(defaults: Defaults, agent: str) -> int:
    """A setting is for all agents, and has its effect where it can."""
    return defaults.reuse if agent in WARM_AGENTS else 0


def refuse_keys(reader: Reader, keys: Iterable[str], why: str) -> None:
    for key in keys:
        if key in reader.table:
            raise UsageError(f"{reader.where}: key {key!r} {why}")


def own_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UsageError("the current directory is gone", hint="cd to one that is there") from None


def check_names(jobs: Sequence[Job], where: str) -> None:
    seen: dict[str, int] = {}
    for job in jobs:
        if job.name in seen:
            raise UsageError(
                f"{where}: jobs {seen[job.name]} and {job.seq} are both named {job.name!r}",
                hint="job names are unique in a file",
            )
        seen[job.name] = job.seq


def check_after(jobs: Sequence[Job], where: str) -> None:
    """Every name in `after` exists, and nobody waits for itself, by however many others."""
    by_name = {job.name: job for job in jobs}
    for job in jobs:
        for name in job.after:
            if name not in by_name:
                raise UsageError(
                    f"{where}: job {job.seq} ({job.name}), key 'after': no job is named {name!r}",
                    hint=nearest(name, by_name),
                )
    if cycle := find_cycle({job.name: job.after for job in jobs}):
        raise UsageError(f"{where}, key 'after': a circle of jobs: {' -> '.join(cycle)}")


def find_cycle(after: Mapping[str, Sequence[str]]) -> list[str]:
    """Take away, again and again, who waits for nobody; who is left goes round in circles."""
    waits_for = {name: set(names) for name, names in after.items()}
    free = [name for name, names in waits_for.items() if not names]
    followers: dict[str, list[str]] = {}
    for name, names in waits_for.items():
        for other in names:
            followers.setdefault(other, []).append(name)
    while free:
        done = free.pop()
        del waits_for[done]
        for name in followers.get(done, ()):
            waits_for[name].discard(done)
            if not waits_for[name]:
                free.append(name)
    if not waits_for:
        return []
    path = [next(iter(waits_for))]
    while path.count(path[-1]) < 2:
        path.append(next(name for name in waits_for[path[-1]] if name in waits_for))
    return path[path.index(path[-1]) :]
