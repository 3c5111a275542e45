"""The error for a wrong call, in one line, with the verb, option or command that was meant.

Imported only for errors. Users of pueue, docker, uv, make and GNU parallel type names from there:
the tables have the names that are spelled too differently from ours for a spelling check.
"""

import argparse
import os
import re
import shlex
from collections.abc import Iterable, Sequence

from ramherd.cli.verbs import VERBS
from ramherd.core.agent_names import AGENTS
from ramherd.core.errors import UsageError
from ramherd.core.values import find_near
from ramherd.jobs.reader import JOB_FILES

# Words that mean a verb of ours, with its options.
VERB_HABITS = {
    "add": "submit", "enqueue": "submit", "batch": "run", "parallel": "run", "xargs": "run",
    "ls": "jobs", "list": "jobs", "queue": "jobs", "top": "jobs --watch",
    "kill": "cancel", "stop": "cancel", "rm": "cancel", "remove": "cancel", "delete": "cancel",
    "log": "logs", "tail": "logs -f", "follow": "logs -f", "inspect": "show", "info": "show",
    "start": "up", "serve": "up", "daemon": "up", "unpause": "resume", "continue": "resume",
    "restart": "retry", "rerun": "retry", "clean": "prune", "gc": "prune", "stats": "ps",
    "settings": "config", "check": "doctor", "version": "--version",
}  # fmt: skip
# Options that mean an option of ours: the first that the verb has.
FLAG_HABITS = {
    "--max-parallel": ("-j", "-P", "--jobs", "--max-procs", "--parallel", "--concurrency",
                       "--workers", "--max-jobs"),
    "--cwd": ("-C", "-w", "--workdir", "--directory", "--chdir", "--dir"),
    "--memory-limit": ("-m", "--mem", "--mem-limit", "--memory-max", "--memfree"),
    "--quiet": ("-q", "--silent"),
    "--keep-order": ("-k",),
    "--dry-run": ("-n", "--dryrun", "--simulate"),
    "--all": ("-a",),
    "--watch": ("-w", "-f", "--follow"),
    "--follow": ("-F", "--watch"),
    "--lines": ("--tail",),
    "--yes": ("-y",),
}  # fmt: skip
# Options of `run` that mean: do not wait for the jobs.
DETACH = ("-d", "--detach", "--background")
# Options that are not needed: the terminal is the program's, and progress is always shown.
NOT_NEEDED = ("-it", "-ti", "-i", "-t", "--rm", "--tty", "--interactive", "--bar", "--progress",
              "--eta")  # fmt: skip
# The values of these options stand alone in our verbs.
NO_FLAGS = (("results", "--herd"), ("show", "--job"), ("logs", "--job"))
# Options whose purpose another verb serves: `docker ps -a` lists containers that have ended.
OTHER_VERBS = {("ps", "-a"): "jobs --all", ("ps", "--all"): "jobs --all"}
# An example value for each kind of option, by its name in the help.
VALUES = {
    "SIZE": "2GiB", "TIME": "90s", "N": "4", "SHARE": "0.5", "AGENT": "claude", "USD": "5",
    "KIND": "auto", "DIR": ".", "PORT": "8080", "RATE": "2GiB/h", "NxSIZE": "4x16GiB",
}  # fmt: skip
# This similarity or more is a typing error: `rnu` is `run` (0.67), `--own` is not `--json` (0.57).
NEAR = 0.66
MOST_NAMED = 4


def wrong_verb(argv: Sequence[str]) -> UsageError:
    word, *rest = argv
    if word.startswith("-"):
        return UsageError(f"expected a verb, got {word!r}", hint=verb_first(argv))
    if word.endswith(JOB_FILES) or any(map(str.isspace, word)):
        return UsageError(f"expected a verb, got {word!r}", hint=run_words([word]))
    if word in AGENTS:
        is_prompt = bool(rest) and not rest[0].startswith("-")
        hint = run_words(argv) if is_prompt else command("exec", "--", *argv)
        return UsageError(f"unknown verb {word!r}", hint=hint)
    meant = VERB_HABITS.get(word) or near(word, VERBS)
    return UsageError(f"unknown verb {word!r}", hint=ask(meant) or "see the verbs: ramherd --help")


def verb_first(argv: Sequence[str]) -> str:
    """The same call, with the verb before its options."""
    at = next((at for at, word in enumerate(argv) if word in VERBS), None)
    return "ramherd --help" if at is None else command(argv[at], *argv[:at], *argv[at + 1 :])


def run_words(words: Sequence[str]) -> str:
    """`ramherd run` for words that are a job file, an agent with prompts, a command, or prompts."""
    from ramherd.system.executables import find_executable  # noqa: PLC0415

    if words[0].endswith(JOB_FILES):
        return command("run", words[0])
    if words[0] in AGENTS and len(words) > 1:
        return command("run", "--agent", *words)
    path = os.environ.get("PATH", os.defpath)
    if not any(map(str.isspace, words[0])) and find_executable(words[0], path):
        return command("exec", "--", *words)
    return command("run", "--agent", "claude", *words)


def wrong_words(
    unknown: Sequence[str], argv: Sequence[str], parser: argparse.ArgumentParser
) -> UsageError:
    """Options that the verb does not have, or words that it does not take."""
    verb, word = argv[0], unknown[0].partition("=")[0]
    if verb == "exec" and "--" not in argv:
        words = parser.parse_known_args(argv[1:])[0].words
        if words:
            return missing_dashes(argv[argv.index(words[0]) :])
    hint = explain_flag(word, argv, parser) if word.startswith("-") else explain_word(unknown, argv)
    return UsageError(f"unknown argument {word!r}", hint=hint or f"ramherd {verb} --help")


def missing_dashes(words: Sequence[str]) -> UsageError:
    """The error for `ramherd exec claude`, which lacks only the dashes."""
    hint = command("exec", "--", *(words or ["claude"]))
    return UsageError("exec needs -- before the command", hint=hint)


def explain_word(unknown: Sequence[str], argv: Sequence[str]) -> str:
    if argv[0] == "drill" and unknown[0].isdigit():
        return command("drill", "--agents", unknown[0])
    return ""


def explain_flag(word: str, argv: Sequence[str], parser: argparse.ArgumentParser) -> str:
    if meant := OTHER_VERBS.get((argv[0], word)):
        return f"ramherd {meant}"
    if word in NOT_NEEDED or (argv[0], word) in NO_FLAGS:
        return command(*(other for other in argv if other != word))
    if word in DETACH and argv[0] == "run":
        return command("submit", *(other for other in argv[1:] if other != word))
    known = known_flags(parser)
    if word.replace("_", "-") in known:
        return ask(word.replace("_", "-"))
    longer = [flag for flag in known if word.startswith("--") and flag.startswith(word)]
    if longer:
        return ask(*longer[:MOST_NAMED])
    habits = [meant for meant, words in FLAG_HABITS.items() if word in words and meant in known]
    attached = word[2:] if re.fullmatch("-[a-zA-Z][0-9]+", word) else ""
    if attached:
        short = word[:2]
        habits = [meant for meant, words in FLAG_HABITS.items() if short in words]
        habits = [f"{meant} {attached}" for meant in habits if meant in known]
    return ask(habits[0] if habits else near(word, known))


def known_flags(parser: argparse.ArgumentParser) -> list[str]:
    """Without aliases, which the help leaves out."""
    actions = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
    return [flag for action in actions for flag in action.option_strings]


def wrong_option(message: str, words: Sequence[str], parser: argparse.ArgumentParser) -> UsageError:
    """The errors of argparse in our words."""
    for pattern, explain in (
        (r"the following arguments are required: (.+)", explain_missing),
        (r"argument (\S+): expected .*", explain_no_value),
        (r"argument (\S+): invalid (?:int|float) value: '(.*)'", explain_number),
        (r"argument (\S+): invalid choice: '?(.*?)'? \(choose from (.*)\)", explain_choice),
        (r"argument (\S+): not allowed with argument (\S+)", explain_conflict),
        (r"argument (\S+): ignored explicit argument .*", explain_switch),
    ):
        if found := re.fullmatch(pattern, message, re.DOTALL):
            return explain(found.groups(), words, parser)
    return UsageError(message, hint=f"{parser.prog} --help")


Groups = tuple[str, ...]


def explain_missing(
    found: Groups, _words: Sequence[str], parser: argparse.ArgumentParser
) -> UsageError:
    from ramherd.cli.parser import split_epilog  # noqa: PLC0415 - imports this file

    examples = split_epilog(parser.epilog)[0] if parser.epilog else []
    choices = [str(next(iter(action.choices))) for action in parser._actions if action.choices]
    hint = examples[0].line if examples else " ".join([parser.prog, *(choices or ["--help"])])
    return UsageError(f"{found[0]} is missing", hint=hint)


def explain_no_value(
    found: Groups, words: Sequence[str], parser: argparse.ArgumentParser
) -> UsageError:
    flag = long_name(found[0])
    at = words.index(flag) + 1 if flag in words else len(words)
    if at < len(words) and re.match("-[0-9.]", words[at]):
        return UsageError(f"{flag}: {words[at]!r} is below zero", hint=example_of(flag, parser))
    return UsageError(f"{flag} needs a value", hint=example_of(flag, parser))


def explain_number(
    found: Groups, _words: Sequence[str], parser: argparse.ArgumentParser
) -> UsageError:
    flag = long_name(found[0])
    return UsageError(f"{flag}: {found[1]!r} is not a whole number", hint=example_of(flag, parser))


def explain_choice(
    found: Groups, words: Sequence[str], parser: argparse.ArgumentParser
) -> UsageError:
    word, choices = found[1], re.findall(r"[\w-]+", found[2])
    meant = near(word, choices) or (choices[0] if len(choices) == 1 else "")
    hint = command_after(parser, words, word, meant) if meant else f"one of: {', '.join(choices)}"
    return UsageError(f"{word!r} is not one of {', '.join(choices)}", hint=hint)


def command_after(
    parser: argparse.ArgumentParser, words: Sequence[str], word: str, meant: str
) -> str:
    """The same call with the right word."""
    return " ".join([parser.prog, shlex.join(meant if one == word else one for one in words)])


def explain_conflict(
    found: Groups, _words: Sequence[str], _parser: argparse.ArgumentParser
) -> UsageError:
    first, second = map(long_name, found)
    return UsageError(f"{first} and {second} do not go together", hint=f"leave out {first}")


def explain_switch(
    found: Groups, _words: Sequence[str], _parser: argparse.ArgumentParser
) -> UsageError:
    flag = long_name(found[0])
    return UsageError(f"{flag} takes no value", hint=f"write {flag} alone")


def example_of(flag: str, parser: argparse.ArgumentParser) -> str:
    action = next(one for one in parser._actions if flag in (*one.option_strings, one.metavar))
    name = str(action.metavar or action.dest)
    return f"write it like {flag} {VALUES.get(name, name)}"


def long_name(names: str) -> str:
    return names.rpartition("/")[2]


def near(word: str, words: Iterable[str]) -> str:
    """Without dashes, which all options share."""
    named = {one.lstrip("-"): one for one in words}
    return named.get(find_near(word.lstrip("-"), named, NEAR), "")


def ask(*meant: str) -> str:
    *others, last = [repr(one) for one in meant if one] or [""]
    named = f"{', '.join(others)} or {last}" if others else last
    return f"did you mean {named}?" if named else ""


def command(*words: str) -> str:
    return f"ramherd {shlex.join(words)}"
