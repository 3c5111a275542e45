"""The completions of a command line: `ramherd __complete WORD ...`, called by shell scripts at Tab.

The last word is the one that is being typed. The first line of the answer is a kind: `words`, and
then each word with its description after a tab; or `files`, `directories` or `programs`, which the
shell completes itself. Verbs and options come from the parsers, so that nothing is listed twice.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from ramherd.cli.verbs import RARE_VERBS, VERBS, WITH_COMMAND
from ramherd.core.errors import RamherdError

WORDS, FILES, DIRECTORIES, PROGRAMS = "words", "files", "directories", "programs"
# At most this many jobs and herds, the newest.
JOBS, HERDS = 200, 20


class TabChoice(NamedTuple):
    word: str
    what: str = ""


class TabChoices(NamedTuple):
    kind: str
    found: Iterable[TabChoice] = ()


NOTHING = TabChoices(WORDS)


def print_choices(words: Sequence[str]) -> int:
    """Never an error, which would appear in the line that the user is typing."""
    try:
        kind, found = complete(words)
        lines = [f"{one.word}\t{one.what}" for one in found if is_one_line(one.word)]
    except (RamherdError, OSError):
        return 0
    print("\n".join([kind, *lines]))
    return 0


def is_one_line(word: str) -> bool:
    return not any(letter in word for letter in "\n\t")


def complete(words: Sequence[str]) -> TabChoices:
    typed = words[-1] if words else ""
    if len(words) < 2:
        return TabChoices(WORDS, starting(typed, list_verbs(typed)))
    verb = words[0]
    if verb not in VERBS:
        return NOTHING
    if "--" in words[1:-1]:
        is_first = words[-2] == "--"
        if verb not in WITH_COMMAND:
            return NOTHING
        return TabChoices(PROGRAMS if is_first and verb == "exec" else FILES)
    from ramherd.cli.parser import make_parser  # noqa: PLC0415 - not needed for verbs

    return complete_verb(make_parser(verb), list(words[1:]))


def list_verbs(typed: str) -> Iterator[TabChoice]:
    if typed.startswith("-"):
        yield from (TabChoice("--help", "list the verbs"), TabChoice("--version"))
        return
    for verb, what in VERBS.items():
        if verb not in RARE_VERBS or typed:
            yield TabChoice(verb, what)


def starting(typed: str, choices: Iterable[TabChoice]) -> list[TabChoice]:
    return [choice for choice in choices if choice.word.startswith(typed)]


def complete_verb(parser: argparse.ArgumentParser, words: list[str]) -> TabChoices:
    """bash passes `--flag`, `=` and the value as three words, the other shells as one."""
    if words[-1] == "=":
        words.append("")
    *before, typed = words
    if len(before) > 1 and before[-1] == "=":
        return complete_value(find_option(parser, before[-2]), typed)
    flag, equals, value = typed.partition("=")
    if typed.startswith("--") and equals:
        kind, found = complete_value(find_option(parser, flag), value)
        return TabChoices(kind, [one._replace(word=f"{flag}={one.word}") for one in found])
    previous = find_option(parser, before[-1]) if before else None
    if previous is not None and takes_value(previous):
        return complete_value(previous, typed)
    place = find_typed(parser, before)
    if typed.startswith("-"):
        return TabChoices(WORDS, list_options(place.parser, typed))
    return complete_value(place.action, typed)


class TypedWord(NamedTuple):
    """The parser of the typed word, and its argument, if the word is not an option."""

    parser: argparse.ArgumentParser
    action: argparse.Action | None


def find_typed(parser: argparse.ArgumentParser, before: Sequence[str]) -> TypedWord:
    """`before` are the words before it. A verb of a verb (`hook install`) has its own parser."""
    positional = [action for action in parser._actions if not action.option_strings]
    skips = False
    for at, word in enumerate(before):
        option = find_option(parser, word)
        if skips or option is not None or word.startswith("-"):
            skips = not skips and option is not None and takes_value(option)
            continue
        if not positional:
            return TypedWord(parser, None)
        action = positional[0]
        if isinstance(action, argparse._SubParsersAction):
            inner = action.choices.get(word)
            return TypedWord(parser, None) if inner is None else find_typed(inner, before[at + 1 :])
        if action.nargs not in ("*", "+"):
            positional.pop(0)
    return TypedWord(parser, positional[0] if positional else None)


def find_option(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    return parser._option_string_actions.get(word)


def takes_value(action: argparse.Action) -> bool:
    """`--resume [HERD]` may stand alone, but the next word is its value."""
    return action.nargs != 0


def list_options(parser: argparse.ArgumentParser, typed: str) -> list[TabChoice]:
    """Options for experiments only if no other option begins with `typed`."""
    from ramherd.cli.parser import is_rare  # noqa: PLC0415

    shown = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
    for actions in ([one for one in shown if not is_rare(one)], shown):
        found = [
            TabChoice(flag, (action.help or "").replace("\n", " "))
            for action in actions
            for flag in action.option_strings
            if flag.startswith(typed) and (flag.startswith("--") or typed == "-")
        ]
        if found:
            return found
    return []


def complete_value(action: argparse.Action | None, typed: str) -> TabChoices:
    if action is None:
        return NOTHING
    if action.choices is not None:
        return TabChoices(WORDS, starting(typed, list_choices(action)))
    if action.metavar in ("FILE", "PATH"):
        return TabChoices(FILES)
    if action.metavar == "DIR":
        return TabChoices(DIRECTORIES)
    lister = LISTS.get(action.dest) or LISTS.get(str(action.metavar))
    return TabChoices(WORDS, starting(typed, lister())) if lister is not None else NOTHING


def list_choices(action: argparse.Action) -> Iterator[TabChoice]:
    helps = {one.dest: one.help or "" for one in getattr(action, "_choices_actions", ())}
    for choice in action.choices or ():
        yield TabChoice(str(choice), helps.get(str(choice), ""))


def list_jobs() -> Iterator[TabChoice]:
    """By number, then by name, the newest first."""
    from ramherd.cli.store_reader import open_to_read  # noqa: PLC0415 - only for jobs
    from ramherd.store.herds import read_newest_jobs  # noqa: PLC0415

    with closing(open_to_read()) as store:
        jobs = read_newest_jobs(store, JOBS)
    names: dict[str, TabChoice] = {}
    for number, name, state in jobs:
        names.setdefault(name, TabChoice(name, f"job {number}, {state}"))
        yield TabChoice(str(number), f"{name}, {state}")
    yield from names.values()


def list_herds() -> Iterator[TabChoice]:
    from ramherd.cli.store_reader import open_to_read  # noqa: PLC0415 - only for herds
    from ramherd.store import listing  # noqa: PLC0415

    yield TabChoice("last", "the newest herd")
    with closing(open_to_read()) as store:
        for herd in listing.list_herds(store, most=HERDS):
            counts = ", ".join(f"{number} {state}" for state, number in herd["counts"].items())
            yield TabChoice(herd["herd"], counts)


def list_jobs_and_herds() -> Iterator[TabChoice]:
    yield from list_jobs()
    yield from list_herds()


def list_profiles() -> Iterator[TabChoice]:
    from ramherd.config.load import load_config  # noqa: PLC0415 - only for profiles

    for name in load_config(report=lambda _error: None).profiles:
        yield TabChoice(name, f"[profile.{name}]")


def list_mcp_servers() -> Iterator[TabChoice]:
    from ramherd.config.load import load_config  # noqa: PLC0415 - only for servers
    from ramherd.config.paths import state_path  # noqa: PLC0415
    from ramherd.store.mcp_servers import read_servers  # noqa: PLC0415

    servers = load_config(report=lambda _error: None).servers
    yield from map(TabChoice, read_servers(servers, state_path()))


def list_agents() -> Iterator[TabChoice]:
    from ramherd.core.agent_names import AGENTS  # noqa: PLC0415

    yield from map(TabChoice, AGENTS)


def list_pens() -> Iterator[TabChoice]:
    from ramherd.core.policies import PEN_KINDS  # noqa: PLC0415

    yield from map(TabChoice, ("auto", *PEN_KINDS))


def list_shown_verbs() -> Iterator[TabChoice]:
    return list_verbs("")


# By the name of an option, or by the name of its value in the help.
LISTS = {
    "agent": list_agents,
    "pen": list_pens,
    "mcp": list_mcp_servers,
    "SERVER": list_mcp_servers,
    "profile": list_profiles,
    "herd": list_herds,
    "resume": list_herds,
    "HERD": list_herds,
    "JOB": list_jobs,
    "JOB|HERD": list_jobs_and_herds,
    "VERB": list_shown_verbs,
}
