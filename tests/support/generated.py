"""Files that are made from the source: `make generate` writes them, and tests compare them.

From the tables of keys: docs/config.md and docs/jobs.md (their tables), docs/openapi.json,
src/ramherd/client/new_job.py and run_settings.py. From every text for users:
tests/data/sentences.txt.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from ramherd.api.openapi import describe
from ramherd.config.keys import KEYS, RUN_KEYS
from ramherd.jobs.schema import AGENTS_ONLY, BUILT_KEYS, COMMANDS, KEYS_TO_COME, JobKey
from support.sentences import render_sentences

ROOT = Path(__file__).parents[2]
USES = {"": "all", COMMANDS: "commands", AGENTS_ONLY: "agents"}


def render_settings() -> str:
    return render_table(
        "| key | flag | variable | default | what |",
        (
            f"| `{key.name}` | `{key.flag}` | `{key.variable}` "
            f"| {key.show(key.default)} | {key.help} |"
            for key in KEYS
        ),
    )


def render_jobs() -> str:
    return render_table(
        "| key | for | value | setting | what |", (render_key(key) for key in BUILT_KEYS.values())
    )


def render_key(key: JobKey) -> str:
    value = key.kind.metavar or "true, false"
    setting = f"`{key.name}`" if key.is_setting else ""
    return f"| `{key.name}` | {USES[key.use]} | {value} | {setting} | {key.help} |"


def render_keys_to_come() -> str:
    return ", ".join(f"`{name}`" for name in KEYS_TO_COME)


def render_table(head: str, rows: Iterable[str]) -> str:
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *rows])


def render_new_job() -> str:
    fields = "".join(
        f"    # {key.help}\n    {key.name}: {key.kind.annotation}\n" for key in BUILT_KEYS.values()
    )
    return f'''"""The keys of a job, for type checkers. Generated from jobs/schema.py."""

from collections.abc import Mapping, Sequence
from typing import TypedDict


class NewJob(TypedDict, total=False):
    """A job for `Client.submit`: what a [[job]] table of a file has."""

{fields}'''


def render_run_settings() -> str:
    fields = "".join(
        f"    # {key.help}\n    {key.name.replace('.', '_')}: {key.kind.annotation} | None\n"
        for key in RUN_KEYS
    )
    return f'''"""The settings of a run, for type checkers. Generated from config/keys.py."""

from collections.abc import Sequence
from typing import TypedDict


class RunSettings(TypedDict, total=False):
    """The settings of `ramherd.run`: the flags of `ramherd run`. None is the same as not given."""

{fields}'''


def replace_table(text: str, table: str) -> str:
    """The table that begins with the same line gives way to this one."""
    head = table.partition("\n")[0]
    start = text.index(head)
    end = text.index("\n\n", start)
    return text[:start] + table + text[end:]


FILES: dict[str, Callable[[str], str]] = {
    "docs/config.md": lambda text: replace_table(text, render_settings()),
    "docs/jobs.md": lambda text: replace_table(text, render_jobs()),
    "docs/openapi.json": lambda _text: json.dumps(describe(), indent=1) + "\n",
    "src/ramherd/client/new_job.py": lambda _text: render_new_job(),
    "src/ramherd/client/run_settings.py": lambda _text: render_run_settings(),
    "tests/data/sentences.txt": lambda _text: render_sentences(),
}


def main() -> None:
    for name, render in FILES.items():
        path = ROOT / name
        path.write_text(render(path.read_text() if path.exists() else ""))


if __name__ == "__main__":
    main()
