"""Typical mistakes, as data: what is typed, what ramherd prints, and what the hint leads to.

Habits from pueue, docker, uv, make and GNU parallel are among them. `right` is what a user types
after reading the hint; left empty, it is made from the hint: the command that it names, or the
typed line with the word that it proposes. `mended` are the files after the hint was followed.
"""

from collections.abc import Mapping
from typing import NamedTuple

# In the directory of every call. `lint` and `fix-lint` are also jobs of the herd in the store.
FILES = {
    "jobs.toml": '[[job]]\nname = "lint"\ncommand = ["true"]\n',
    "more.toml": '[[job]]\nname = "more"\ncommand = ["true"]\n',
    "prompts.txt": "fix the lint errors\nwrite the missing tests\n",
    "folder/jobs.toml": '[[job]]\ncommand = ["true"]\n',
}


class Mistake(NamedTuple):
    """`code` is the exit code; `{herd}` in a text is the id of the herd in the store."""

    typed: str
    error: str
    hint: str
    right: str = ""
    code: int = 2
    files: Mapping[str, str] = {}
    mended: Mapping[str, str] = {}


def size(typed: str, place: str, number: str, meant: str) -> Mistake:
    return Mistake(
        typed, f"{place}: size '{number}' has no unit", f"{number} bytes? say {meant}",
        typed.replace(number, meant),
    )  # fmt: skip


def file(name: str, wrong: str, error: str, hint: str, right: str) -> Mistake:
    """A mistake in a file, which the hint helps to mend."""
    typed = f"ramherd run {'jobs.toml' if name == 'ramherd.toml' else name}"
    return Mistake(typed, error, hint, typed, files={name: wrong}, mended={name: right})


def verb(word: str, meant: str, rest: str = "") -> Mistake:
    """A verb of another tool, or one that is misspelt."""
    return Mistake(f"ramherd {word}{rest}", f"unknown verb '{word}'", f"did you mean '{meant}'?")


VERBS = [
    verb("jbos", "jobs"), verb("runn", "run", " jobs.toml"), verb("log", "logs", " lint"),
    verb("add", "submit", " jobs.toml"), verb("ls", "jobs"), verb("list", "jobs"),
    verb("kill", "cancel", " lint"), verb("stop", "cancel", " lint"), verb("start", "up"),
    verb("tail", "logs -f", " lint"), verb("inspect", "show", " lint"), verb("clean", "prune"),
    verb("restart", "retry", " lint"), verb("version", "--version"), verb("settings", "config"),
    verb("xargs", "run", " jobs.toml"),
    Mistake("ramherd xyzzy", "unknown verb 'xyzzy'", "see the verbs: ramherd --help"),
    Mistake("ramherd help jbos", "unknown verb 'jbos'", "did you mean 'jobs'?"),
    Mistake("ramherd claude", "unknown verb 'claude'", "ramherd exec -- claude"),
    Mistake(
        "ramherd claude 'fix the bug'", "unknown verb 'claude'",
        "ramherd run --agent claude 'fix the bug'",
    ),
    Mistake(
        "ramherd jobs.toml", "expected a verb, got 'jobs.toml'", "ramherd run jobs.toml"
    ),
    Mistake(
        "ramherd 'fix the bug'", "expected a verb, got 'fix the bug'",
        "ramherd run --agent claude 'fix the bug'",
    ),
    Mistake(
        "ramherd --json jobs", "expected a verb, got '--json'", "ramherd jobs --json"
    ),
    Mistake(
        "ramherd --budget 4GiB run jobs.toml", "expected a verb, got '--budget'",
        "ramherd run --budget 4GiB jobs.toml",
    ),
]  # fmt: skip

OPTIONS = [
    Mistake(
        "ramherd run --max-paralel 4 jobs.toml", "unknown argument '--max-paralel'",
        "did you mean '--max-parallel'?",
    ),
    Mistake(
        "ramherd run --jobs 4 jobs.toml", "unknown argument '--jobs'",
        "did you mean '--max-parallel'?",
    ),
    Mistake(
        "ramherd run -P 4 jobs.toml", "unknown argument '-P'", "did you mean '--max-parallel'?"
    ),
    Mistake(
        "ramherd run -P4 jobs.toml", "unknown argument '-P4'", "did you mean '--max-parallel 4'?"
    ),
    Mistake(
        "ramherd run --budget_share 0.5 jobs.toml", "unknown argument '--budget_share'",
        "did you mean '--budget-share'?",
    ),
    Mistake(
        "ramherd run --workdir folder jobs.toml", "unknown argument '--workdir'",
        "did you mean '--cwd'?",
    ),
    Mistake("ramherd run -d jobs.toml", "unknown argument '-d'", "ramherd submit jobs.toml"),
    Mistake("ramherd jobs --jso", "unknown argument '--jso'", "did you mean '--json'?"),
    Mistake("ramherd run --progress jobs.toml", "unknown argument '--progress'",
            "ramherd run jobs.toml"),
    Mistake("ramherd run --dryrun jobs.toml", "unknown argument '--dryrun'",
            "did you mean '--dry-run'?"),
    Mistake(
        "ramherd run --mem 4GiB jobs.toml", "unknown argument '--mem'",
        "did you mean '--memory' or '--memory-limit'?", "ramherd run --memory 4GiB jobs.toml",
    ),
    Mistake("ramherd ps -a", "unknown argument '-a'", "ramherd jobs --all"),
    Mistake("ramherd jobs -a", "unknown argument '-a'", "did you mean '--all'?"),
    Mistake("ramherd logs lint --tail 20", "unknown argument '--tail'", "did you mean '--lines'?"),
    Mistake("ramherd exec -it -- bash", "unknown argument '-it'", "ramherd exec -- bash"),
    Mistake("ramherd exec claude", "exec needs -- before the command", "ramherd exec -- claude"),
    Mistake("ramherd exec", "no command after --", "ramherd exec -- claude"),
    Mistake("ramherd drill 50", "unknown argument '50'", "ramherd drill --agents 50"),
    Mistake("ramherd reap -y", "unknown argument '-y'", "did you mean '--yes'?"),
    Mistake("ramherd jobs -- lint", "jobs takes no command", "ramherd jobs --help"),
    Mistake("ramherd show", "JOB is missing", "ramherd show fix-lint"),
    Mistake("ramherd cancel", "JOB|HERD is missing", "ramherd cancel fix-lint"),
    Mistake(
        "ramherd show lint --full --json", "--json and --full do not go together",
        "leave out --json", "ramherd show lint --full",
    ),
    Mistake(
        "ramherd run jobs.toml --worktree=yes", "--worktree takes no value",
        "write --worktree alone", "ramherd run jobs.toml --worktree",
    ),
    Mistake(
        "ramherd hook instal claude",
        "'instal' is not one of install, uninstall, status", "ramherd hook install claude",
    ),
    Mistake("ramherd hook install", "agent is missing", "ramherd hook install claude"),
    Mistake("ramherd hook", "WHAT is missing", "ramherd hook install claude"),
    Mistake("ramherd mcp", "WHAT is missing", "ramherd mcp import"),
    Mistake("ramherd mcp enable", "agent is missing", "ramherd mcp enable claude"),
    Mistake(
        "ramherd results --herd {herd}", "unknown argument '--herd'", "ramherd results {herd}"
    ),
    Mistake(
        "ramherd hook install codex", "'codex' is not one of claude", "ramherd hook install claude"
    ),
]  # fmt: skip

VALUES = [
    size("ramherd run --budget 12 jobs.toml", "--budget", "12", "12GiB"),
    size("ramherd run --memory-limit 4 jobs.toml", "--memory-limit", "4", "4GiB"),
    size("ramherd run --memory 536870912 jobs.toml", "--memory", "536870912", "512MiB"),
    size("RAMHERD_BUDGET=16 ramherd run jobs.toml", "RAMHERD_BUDGET", "16", "16GiB"),
    size("ramherd prune --keep 5", "--keep", "5", "5GiB"),
    size("ramherd edit lint --memory 4", "--memory", "4", "4GiB"),
    Mistake(
        "ramherd edit lint --priority high", "--priority: 'high' is not a whole number",
        "write it like 4", "ramherd edit lint --priority 4",
    ),
    Mistake(
        "ramherd run --budget 512KiB jobs.toml", "--budget: size '512KiB' is below 1 MiB",
        "write it like 512MiB", "ramherd run --budget 512MiB jobs.toml",
    ),
    Mistake(
        "ramherd run --budget -5GiB jobs.toml", "--budget: '-5GiB' is below zero",
        "write it like --budget 2GiB", "ramherd run --budget 2GiB jobs.toml",
    ),
    Mistake(
        "ramherd run jobs.toml --budget", "--budget needs a value", "write it like --budget 2GiB",
        "ramherd run jobs.toml --budget 2GiB",
    ),
    Mistake(
        "ramherd run --budget 12Go jobs.toml", "--budget: size '12Go' has an unknown unit",
        "use KiB, MiB, GiB, KB, MB or GB", "ramherd run --budget 12GB jobs.toml",
    ),
    Mistake(
        "ramherd run --budget-share 80 jobs.toml", "--budget-share: '80' is above 1", "write 0.8",
        "ramherd run --budget-share 0.8 jobs.toml",
    ),
    Mistake(
        "ramherd run --max-parallel 0 jobs.toml", "--max-parallel: 0 is below 1",
        "write 1 or more", "ramherd run --max-parallel 1 jobs.toml",
    ),
    Mistake(
        "ramherd run --max-parallel four jobs.toml", "--max-parallel: 'four' is not a whole number",
        "write it like 4", "ramherd run --max-parallel 4 jobs.toml",
    ),
    Mistake(
        "ramherd run --retries -1 jobs.toml", "--retries: -1 is below zero", "write 0 or more",
        "ramherd run --retries 0 jobs.toml",
    ),
    Mistake(
        "ramherd run --timeout soon jobs.toml", "--timeout: 'soon' is not a duration",
        "write it like 90s or 5m", "ramherd run --timeout 90s jobs.toml",
    ),
    Mistake(
        "ramherd run --max-cost-usd free jobs.toml",
        "--max-cost-usd: 'free' is not an amount above zero", "write it like 2.50",
        "ramherd run --max-cost-usd 2.50 jobs.toml",
    ),
    Mistake(
        "ramherd run --agent cluade 'fix the bug'",
        "--agent: 'cluade' is not a known agent", "did you mean 'claude'?",
    ),
    Mistake(
        "ramherd run --pen docker jobs.toml", "--pen: 'docker' is not a kind of pen",
        "one of: auto, cgroup2, cgroup1, polling", "ramherd run --pen polling jobs.toml",
    ),
    Mistake(
        "ramherd run --at 25:00 jobs.toml", "--at '25:00' is not a time of day",
        "write it like 22:00 or 2026-12-31T22:00", "ramherd run --at 22:00 jobs.toml",
    ),
    Mistake(
        "ramherd run --agent claude --memory-limit 100MiB 'fix the bug' --dry-run",
        "job 1-fix-the-bug: memory_limit 100 MiB is below the 381 MiB that claude needs",
        'write memory_limit = "381MiB" or more, or ramherd run --force',
        "ramherd run --agent claude --memory-limit 381MiB 'fix the bug'",
    ),
    Mistake(
        "ramherd exec --memory-limit 100MiB -- claude",
        "memory_limit 100 MiB is below the 381 MiB that claude needs",
        "ramherd exec --memory-limit 381MiB -- claude",
    ),
    Mistake(
        "ramherd logs lint -n many", "--lines: 'many' is not a whole number",
        "write it like --lines 4", "ramherd logs lint --lines 4",
    ),
]  # fmt: skip

JOBS = [
    Mistake("ramherd run", "no jobs were given", "see the examples: ramherd run --help"),
    Mistake(
        "ramherd run 'fix the bug'", "'fix the bug' is not a job file, and a prompt needs --agent",
        "ramherd run --agent claude 'fix the bug'",
    ),
    Mistake(
        "ramherd run claude 'fix the bug'",
        "'claude' is not a job file, and a prompt needs --agent",
        "ramherd run --agent claude 'fix the bug'",
    ),
    Mistake(
        "ramherd run echo hello", "'echo' is not a job file, and a prompt needs --agent",
        "ramherd exec -- echo hello",
    ),
    Mistake(
        "ramherd run echo ::: a b", "run takes values from standard input, not after ':::'",
        "printf '%s\\n' a b | ramherd run -- echo '{}'",
    ),
    Mistake(
        "ramherd run --agent claude jobs.toml 'fix it'",
        "'jobs.toml' is a job file, not a prompt", "ramherd run jobs.toml",
    ),
    Mistake(
        "ramherd run jobs.toml more.toml", "2 job files were given, and one is taken",
        "ramherd run jobs.toml",
    ),
    Mistake(
        "ramherd run job.toml", "cannot read job.toml: No such file or directory",
        "did you mean 'jobs.toml'?", "ramherd run jobs.toml",
    ),
    Mistake(
        "ramherd run prompts.txt", "'prompts.txt' is not a job file, and a prompt needs --agent",
        "ramherd run --agent claude prompts.txt",
    ),
    Mistake(
        "ramherd run jobs.tom", "cannot read jobs.tom: No such file or directory",
        "did you mean 'jobs.toml'?", "ramherd run jobs.toml",
    ),
    Mistake(
        "ramherd run folder", "cannot read folder: Is a directory", "name a file in it: ls folder",
        "ramherd run folder/jobs.toml",
    ),
    Mistake(
        "ramherd run --cwd nowhere jobs.toml", "'{here}/nowhere' is not a directory",
        "mkdir {here}/nowhere", "mkdir {here}/nowhere && ramherd run --cwd nowhere jobs.toml",
    ),
    Mistake(
        "ramherd run -- echo {}", "no jobs in standard input",
        "see the examples: ramherd run --help",
    ),
    Mistake(
        "ramherd run --profile big jobs.toml", "--profile: no profile is named 'big'",
        "add [profile.big] to ramherd.toml", "ramherd run --profile big jobs.toml",
        mended={"ramherd.toml": '[profile.big]\nmemory = "2GiB"\n'},
    ),
    file("x.toml", '[[job]\nname = "a"',
         "x.toml is not TOML: Expected ']]' at the end of an array declaration "
         "(at line 1, column 6)",
         "see the examples: ramherd run --help", '[[job]]\nname = "a"\ncommand = "true"'),
    file("x.jsonl", '{"name" "a"}',
         "x.jsonl, line 1 is not JSON: Expecting ':' delimiter: line 1 column 9 (char 8)",
         "see the examples: ramherd run --help", '{"name": "a", "command": "true"}'),
    file("x.toml", 'name = "a"\ncommand = "true"', "x.toml has an unknown key 'name'",
         "write [[job]] in the line before the keys of each job",
         '[[job]]\nname = "a"\ncommand = "true"'),
    file("x.toml", '[job]\ncommand = "true"', "x.toml: 'job' is not a list of tables",
         "write [[job]] instead of [job]", '[[job]]\ncommand = "true"'),
    file("x.toml", '[[job]]\ncomand = "true"', "x.toml: job 1 (job-1) has an unknown key 'comand'",
         "did you mean 'command'?", '[[job]]\ncommand = "true"'),
    file("x.toml", '[[job]]\nprompt = "fix it"', "x.toml: job 1 (job-1) has no 'agent'",
         'add agent = "claude", or use --agent', '[[job]]\nagent = "claude"\nprompt = "fix it"'),
    file("x.toml", '[[job]]\ncommand = "true"\nmemory_limit = 512',
         "x.toml: job 1 (job-1), key 'memory_limit': size '512' has no unit",
         "512 bytes? say 512MiB", '[[job]]\ncommand = "true"\nmemory_limit = "512MiB"'),
    file("x.jsonl", '{"command": "true", "memory_limit": 4}',
         "x.jsonl: job 1 (job-1), key 'memory_limit': size '4' has no unit",
         "4 bytes? say 4GiB", '{"command": "true", "memory_limit": "4GiB"}'),
    file("x.toml", '[[job]]\nname = "a"\ncommand = "true"\n' * 2,
         "x.toml: jobs 1 and 2 are both named 'a'", "give job 2 another name",
         '[[job]]\nname = "a"\ncommand = "true"\n[[job]]\nname = "b"\ncommand = "true"'),
    file("x.toml", '[[job]]\nname = "lint"\ncommand = "true"\nafter = ["lnt"]',
         "x.toml: job 1 (lint), key 'after': no job is named 'lnt'", "did you mean 'lint'?",
         '[[job]]\nname = "test"\ncommand = "true"\nafter = ["lint"]\n'
         '[[job]]\nname = "lint"\ncommand = "true"'),
    file("x.toml", '[[job]]\nname = "a"\ncommand = "true"\nafter = ["a"]',
         "x.toml, key 'after': circular dependency: a -> a", "remove 'a' from the `after` of 'a'",
         '[[job]]\nname = "a"\ncommand = "true"'),
    file("x.toml", '[[job]]\ncommand = ["no-such-program"]',
         "x.toml: job 1 (job-1), key 'command': 'no-such-program' is not found",
         "write the path of the program, or add its directory to PATH",
         '[[job]]\ncommand = ["/bin/true"]'),
    file("x.toml", '[[job]]\ncommand = "true"\ncwd = "folders"',
         "x.toml: job 1 (job-1), key 'cwd': '{here}/folders' is not a directory",
         "mkdir {here}/folders", '[[job]]\ncommand = "true"\ncwd = "folder"'),
]  # fmt: skip

NAMES = [
    Mistake("ramherd show lnt", "no job 'lnt' in herd {herd}", "did you mean 'lint'?"),
    Mistake("ramherd logs lint --herd nope", "no herd 'nope'", "ramherd jobs --all"),
    Mistake("ramherd events --herd nope", "no herd 'nope'", "ramherd jobs --all"),
    Mistake("ramherd results nope", "no herd 'nope'", "ramherd jobs --all"),
    Mistake("ramherd jobs --herd nope", "no herd 'nope'", "ramherd jobs --all"),
    Mistake("ramherd run --resume nope", "no herd 'nope'", "ramherd jobs --all"),
    Mistake(
        "ramherd submit jobs.toml", "no ramherd service is running", "ramherd up, or ramherd run",
        "ramherd up", code=3,
    ),
]  # fmt: skip

SETTINGS = [
    file("ramherd.toml", "budget = 12", "{here}/ramherd.toml, line 1, key 'budget': size '12' has "
         "no unit", "12 bytes? say 12GiB", 'budget = "12GiB"'),
    file("ramherd.toml", 'buget = "2GiB"', "{here}/ramherd.toml, line 1 has an unknown key 'buget'",
         "did you mean 'budget'?", 'budget = "2GiB"'),
    file("ramherd.toml", "budget = 2GiB",
         "{here}/ramherd.toml is not TOML: Expected newline or end of document after a statement "
         "(at line 1, column 11)", "texts stand in quotes, as in budget = \"2GiB\"",
         'budget = "2GiB"'),
]  # fmt: skip

MISTAKES = [*VERBS, *OPTIONS, *VALUES, *JOBS, *NAMES, *SETTINGS]
