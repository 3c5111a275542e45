"""Jobs from files and lines: TOML, JSONL, prompts, or one command for each line of standard input.

Reading comes first (`read_tables` and the like: text to tables), then the checks (`make_jobs`:
tables to jobs). The checks happen once, where the jobs will run: in `ramherd run`, or in the
service for submitted jobs. Each error is one line that names the file, the job and the key.
"""

import codecs
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.model import Brief, Job
from ramherd.core.units import MIB, format_size, shown
from ramherd.core.values import nearest, size_from_number
from ramherd.jobs.schema import (
    AGENTS_ONLY,
    BUILT_KEYS,
    COMMAND,
    COMMANDS,
    KEYS_TO_COME,
    PROFILE_KEYS,
    SIZE_KEYS,
    Context,
    JobKey,
)
from ramherd.system.environ import decode_bytes
from ramherd.system.ids import new_id
from ramherd.system.user_files import decode, read_bytes, read_cwd

STANDARD_INPUT = "standard input"
JOB_FILES = (".toml", ".jsonl", ".ndjson")
FORMATS = "see the examples: ramherd run --help"
# For a job that is named after its line or prompt: a table of jobs has room for it.
NAME_LENGTH = 24


class JobTables(NamedTuple):
    """Jobs as they were written, not checked yet. `source` is their origin, for errors."""

    tables: Sequence[Any]
    source: str


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values for jobs that do not set them: by key, parsed, from the settings."""

    values: Mapping[str, Any] = field(default_factory=dict)
    # The same for jobs that name a profile.
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Where relative paths start, and the directory of jobs that name none; if None, our own.
    here: str | None = None
    # The PATH to search for programs; if None, our own.
    path: str | None = None
    # The limit for all agents of a herd, if the herd sets none.
    max_cost_usd: float | None = None


def read_tables(path: str, stdin: bytes | None = None) -> JobTables:
    """`-` is standard input. A `.jsonl` file and text that starts with `{` is JSONL, all else
    TOML.
    """
    source = STANDARD_INPUT if path == "-" else path
    text = decode(stdin or b"" if path == "-" else read_bytes(path), source)
    lines = path.endswith((".jsonl", ".ndjson")) or text.lstrip().startswith("{")
    tables = parse_jsonl(text, source) if lines else parse_toml(text, source)
    return JobTables([sizes_as_text(table) for table in tables], source)


def sizes_as_text(table: Any) -> Any:
    """In a file a size needs a unit; in an API request an integer is a number of bytes. As text, a
    number without a unit is refused wherever the job is checked.
    """
    if not isinstance(table, dict):
        return table
    sizes = {name: size_from_number(table[name]) for name in SIZE_KEYS if name in table}
    return {**table, **sizes}


def tables_from_lines(argv: Sequence[str], data: bytes) -> JobTables:
    """One job for each line that is not blank; the line replaces `{}`, or comes last. File names
    need not be UTF-8.
    """
    lines = [
        line
        for line in split_lines(decode_bytes(data.removeprefix(codecs.BOM_UTF8)))
        if line.strip()
    ]
    whole = any("{}" in word for word in argv)
    tables = [
        {
            "name": line_name(number, line),
            "command": [w.replace("{}", line) for w in argv] if whole else [*argv, line],
        }
        for number, line in enumerate(lines, 1)
    ]
    return JobTables(tables, STANDARD_INPUT)


def tables_from_prompts(prompts: Iterable[str]) -> JobTables:
    """One job for each prompt that is not blank."""
    tables = [
        {"name": line_name(number, prompt), "prompt": prompt}
        for number, prompt in enumerate((text for text in prompts if text.strip()), 1)
    ]
    return JobTables(tables, "prompts")


def read_prompts(path: str) -> list[str]:
    """One prompt for each line."""
    return split_lines(decode(read_bytes(path), path))


def line_name(number: int, line: str) -> str:
    """Short, unique, and still readable: `3-fix-the-lint-errors`. Digits alone would be taken for
    the number of a job.
    """
    words = "".join(c if c.isalnum() or c in "._" else " " for c in line).split()
    whole = "-".join([str(number), *words]) if words else f"job-{number}"
    if len(whole) <= NAME_LENGTH:
        return whole
    short = whole[: NAME_LENGTH + 1].rpartition("-")[0]
    return short if short.count("-") else whole[:NAME_LENGTH]


def split_lines(text: str) -> list[str]:
    """At newlines only: str.splitlines would split JSON texts and prompts at U+2028 too."""
    return [line.removesuffix("\r") for line in text.split("\n")]


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def parse_toml(text: str, where: str) -> list[Any]:
    import tomllib  # noqa: PLC0415 - most herds are lines or JSON, and imports take time

    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also endless numbers and nestings
        raise UsageError(f"{where} is not TOML: {one_line(error)}", hint=FORMATS) from None
    for key in document:
        if key != "job":
            raise UsageError(
                f"{where} has an unknown key {shown(key)}",
                hint="write [[job]] in the line before the keys of each job",
            )
    tables = document.get("job", [])
    if not isinstance(tables, list):
        raise UsageError(
            f"{where}: 'job' is not a list of tables", hint="write [[job]] instead of [job]"
        )
    return tables


def parse_jsonl(text: str, where: str) -> list[Any]:
    tables = []
    for number, line in enumerate(split_lines(text), 1):
        if line.strip():
            try:
                tables.append(json.loads(line))
            except (ValueError, RecursionError) as error:  # also endless numbers
                message = f"{where}, line {number} is not JSON: {one_line(error)}"
                raise UsageError(message, hint=FORMATS) from None
    return tables


def make_jobs(tables: Iterable[Any], source: str, herd: str, defaults: Defaults) -> list[Job]:
    """Checks all keys, of each job alone and of the jobs together."""
    jobs = [
        make_job(table, f"{source}: job {number}", number, herd, defaults)
        for number, table in enumerate(tables, 1)
    ]
    if not jobs:
        raise UsageError(f"no jobs in {source}", hint=FORMATS)
    check_names(jobs, source)
    check_after(jobs, source)
    return jobs


def make_job(table: Any, where: str, number: int, herd: str, defaults: Defaults) -> Job:
    if not isinstance(table, dict):
        raise UsageError(f"{where} is not an object with keys")
    name = f"job-{number}"
    if "name" in table:
        name = parse_value(BUILT_KEYS["name"], table["name"], where)
    where = f"{where} ({name})"
    check_keys(table, where)
    usual = choose_usual(table, defaults, where)
    agent = choose_agent(table, usual.get("agent"), where)
    values: dict[str, Any] = {"name": name, "agent": agent}
    context = Context(defaults.here, agent, defaults.path, values)
    read_values(table, usual, where, context)
    check_memory(values, where)
    stored = [(BUILT_KEYS[key], value) for key, value in values.items()]
    brief = {key.field: value for key, value in stored if key.is_in_brief}
    own = {key.field: value for key, value in stored if not key.is_in_brief}
    own = {"argv": (), **own, "brief": None if agent == COMMAND else Brief(**brief)}
    return Job(id=new_id(), herd=herd, seq=number, **own)


def choose_usual(table: Mapping[str, Any], defaults: Defaults, where: str) -> Mapping[str, Any]:
    """The values of keys that the job does not set."""
    if "profile" not in table:
        return defaults.values
    name = parse_value(BUILT_KEYS["profile"], table["profile"], where)
    if name not in defaults.profiles:
        known = nearest(name, defaults.profiles) if defaults.profiles else ""
        raise UsageError(
            f"{where}, key 'profile': no profile is named {name!r}",
            hint=known or f"add [profile.{name}] to ramherd.toml",
        )
    return defaults.profiles[name]


def choose_agent(table: Mapping[str, Any], usual: str | None, where: str) -> str:
    """COMMAND for a job with a command, even if a setting names an agent."""
    key = BUILT_KEYS["agent"]
    agent = parse_value(key, table["agent"], where) if "agent" in table else usual
    is_named = table.get("agent", COMMAND) != COMMAND
    if (
        agent == COMMAND
        or not (is_named or "prompt" in table)
        or ("command" in table and not is_named)
    ):
        return COMMAND
    if agent is None:
        raise UsageError(f"{where} has no 'agent'", hint=key.missing)
    return str(agent)


def read_values(
    table: Mapping[str, Any], usual: Mapping[str, Any], where: str, context: Context
) -> None:
    """Adds the keys that the job sets or gets. A key without a value is left out: `Job` and `Brief`
    have their own default.
    """
    values, agent = context.values, context.agent
    for key in BUILT_KEYS.values():
        if key.name in values or not key.is_stored:
            continue
        if key.use == (AGENTS_ONLY if agent == COMMAND else COMMANDS):
            refuse(key, table, where)
        elif key.name in table:
            values[key.name] = parse_value(key, table[key.name], where, context)
        elif key.name == "cwd":
            values["cwd"] = context.here or read_cwd()
        elif key.missing:
            raise UsageError(f"{where} has no {key.name!r}", hint=key.missing)
        elif (value := usual.get(key.name)) is not None and agent in key.agents:
            values[key.name] = value if key.check is None else key.check(value, context)


def parse_value(key: JobKey, value: Any, where: str, context: Context | None = None) -> Any:
    try:
        parsed = key.kind.parse(value)
        return parsed if key.check is None or context is None else key.check(parsed, context)
    except RamherdError as error:
        raise UsageError(f"{where}, key {key.name!r}: {error}", hint=error.hint) from None


def refuse(key: JobKey, table: Mapping[str, Any], where: str) -> None:
    if key.name in table:
        why = "needs an agent" if key.use == AGENTS_ONLY else "does not go with an agent"
        hint = 'add agent = "claude"' if key.use == AGENTS_ONLY else f"remove {key.name!r}"
        raise UsageError(f"{where}: key {key.name!r} {why}", hint=hint)


def check_keys(table: Mapping[str, Any], where: str) -> None:
    for key in table:
        if key in KEYS_TO_COME:
            raise UsageError(f"{where}: the feature of key {key!r} is not available yet")
        if key not in BUILT_KEYS:
            hint = nearest(key, BUILT_KEYS)
            raise UsageError(f"{where} has an unknown key {shown(key)}", hint=hint)


def check_memory(values: Mapping[str, Any], where: str) -> None:
    memory, limit = values.get("memory"), values.get("memory_limit")
    if limit is not None and memory is not None and memory > limit:
        raise UsageError(
            f"{where}: memory {format_size(memory)} is above memory_limit {format_size(limit)}",
            hint=f'write memory_limit = "{-(-memory // MIB)}MiB"',
        )


def parse_defaults(table: Any, where: str) -> dict[str, Any]:
    """Values for jobs that do not set them, as in a request."""
    if not isinstance(table, dict):
        raise UsageError(f"{where} is not an object with keys")
    for name in table:
        if name not in PROFILE_KEYS:
            raise UsageError(f"{where} has an unknown key {shown(name)}")
    return {name: parse_value(PROFILE_KEYS[name], table[name], where) for name in table}


def check_names(jobs: Sequence[Job], where: str) -> None:
    seen: dict[str, int] = {}
    for job in jobs:
        if job.name in seen:
            raise UsageError(
                f"{where}: jobs {seen[job.name]} and {job.seq} are both named {job.name!r}",
                hint=f"give job {job.seq} another name",
            )
        seen[job.name] = job.seq


def check_after(jobs: Sequence[Job], where: str) -> None:
    """Every name in `after` must exist, and no job may wait for itself, even through others."""
    by_name = {job.name: job for job in jobs}
    for job in jobs:
        for name in job.after:
            if name not in by_name:
                raise UsageError(
                    f"{where}: job {job.seq} ({job.name}), key 'after': no job is named {name!r}",
                    hint=nearest(name, by_name),
                )
    if cycle := find_cycle({job.name: job.after for job in jobs}):
        raise UsageError(
            f"{where}, key 'after': circular dependency: {' -> '.join(cycle)}",
            hint=f"remove {cycle[1]!r} from the `after` of {cycle[0]!r}",
        )


def find_cycle(after: Mapping[str, Sequence[str]]) -> list[str]:
    """Removes jobs that wait for no other until none is left to remove: the rest has a cycle."""
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
