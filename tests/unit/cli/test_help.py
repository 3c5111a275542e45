"""`--help`, `--help-all` and `ramherd help`: one source, grouped, with examples that parse."""

import argparse
import json
import re
import shlex
from collections.abc import Iterator

import pytest

from ramherd.cli.main import call
from ramherd.cli.parser import (
    OVERVIEW_END,
    Example,
    FullFormatter,
    make_parser,
    render_examples,
    render_overview,
    split_epilog,
)
from ramherd.cli.verbs import GROUPS, RARE_VERBS, VERBS
from ramherd.config.keys import RARE, RUN_KEYS
from ramherd.core.errors import UsageError

OPERATORS = {"|", ">", "<", ";", "&&", "||"}
EXAMPLES = [
    (verb, example) for verb in VERBS for example in split_epilog(make_parser(verb).epilog or "")[0]
] + [("overview", example) for example in split_epilog(OVERVIEW_END)[0]]


def split_command(line: str) -> list[str]:
    """The words of the ramherd call in a shell line, without `ramherd`."""
    if found := re.search(r"\$\((.*)\)", line):
        line = found[1]
    words = shlex.split(line, comments=True)
    words = words[words.index("ramherd") + 1 :]
    end = next((at for at, word in enumerate(words) if word in OPERATORS), len(words))
    return words[:end]


def shown(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the call prints on standard output; it ends well."""
    try:
        code: object = call(argv)
    except SystemExit as ended:
        code = ended.code
    assert code in (0, None)
    return capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_examples(verb: str) -> None:
    """They stand in its epilog, before everything else."""
    assert [name for name, _example in EXAMPLES if name == verb]


@pytest.mark.parametrize(("verb", "example"), EXAMPLES, ids=str)
def test_an_example_parses(verb: str, example: Example) -> None:
    """By the parser that a user's call meets, without a word left over."""
    argv = split_command(example.line)
    options = argv[: argv.index("--")] if "--" in argv else argv

    assert make_parser(options[0]).parse_args(options[1:])


@pytest.mark.parametrize("verb", VERBS)
def test_help_begins_with_a_short_usage(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each way to call it: all options are one word in it."""
    lines = shown([verb, "--help"], capsys).splitlines()

    assert lines.index("") <= 2
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith(f"usage: ramherd {verb}")


def with_inner(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and those of the verbs of a verb."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from with_inner(inner)


@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_in_80_columns(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal would break a longer line within a word; in the manual too."""
    monkeypatch.setenv("COLUMNS", "80")
    for parser in with_inner(make_parser(verb)):
        parser.formatter_class = FullFormatter

        assert [line for line in parser.format_help().splitlines() if len(line) > 80] == []


def test_an_explanation_that_does_not_fit_is_below_its_example() -> None:
    """The others stay in their column."""
    examples = [Example("ramherd ps", "short"), Example("ramherd ps --tree", "x" * 20)]

    assert list(render_examples(examples, 40)) == [
        "  ramherd ps         short",
        "  ramherd ps --tree",
        f"      {'x' * 20}",
    ]


def test_without_a_verb_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Bare `ramherd`, `--help`, `-h` and `help` are the same."""
    texts = {shown(argv, capsys) for argv in ([], ["--help"], ["-h"], ["help"])}

    assert texts == {render_overview()}


def test_the_overview_has_every_verb_once_and_fits_in_80_columns() -> None:
    """Below the title of its group; verbs for experiments only with --help-all."""
    text = render_overview()

    listed = re.findall(r"^  (\w+) ", text.partition("examples:")[0], re.MULTILINE)
    assert sorted(listed) == sorted(set(VERBS) - set(RARE_VERBS))
    assert all(f"\n{title}:\n" in text for title in GROUPS)
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"  {verb} " in render_overview(shows_all=True) for verb in RARE_VERBS)


@pytest.mark.parametrize("verb", ["run", "reap", "events"])
def test_help_of_a_verb_is_its_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`ramherd help VERB` and `ramherd VERB --help` print the same."""
    assert shown(["help", verb], capsys) == shown([verb, "--help"], capsys)


def test_flags_for_experiments_are_hidden_and_work(capsys: pytest.CaptureFixture[str]) -> None:
    """`--help-all` lists them, and the opposites of switches."""
    short, full = shown(["run", "--help"], capsys), shown(["run", "--help-all"], capsys)

    assert "--time-scale" not in short
    assert "--no-worktree" not in short
    assert all(key.flag in full for key in RUN_KEYS)
    assert "--no-worktree" in full
    assert make_parser("run").parse_args(["--time-scale", "2"]).time_scale == "2"


def test_only_known_settings_are_hidden() -> None:
    """A name in the list that is no setting would hide nothing."""
    from ramherd.config.keys import BY_NAME

    assert set(RARE) <= set(BY_NAME)


@pytest.mark.parametrize(
    ("argv", "message", "hint"),
    [
        (["jbos"], "unknown verb 'jbos'", "did you mean 'jobs'?"),
        (["help", "jbos"], "unknown verb 'jbos'", "did you mean 'jobs'?"),
        (["rnu"], "unknown verb 'rnu'", "did you mean 'run'?"),
        (["help", "rnu"], "unknown verb 'rnu'", "did you mean 'run'?"),
        (["submit", "--own"], "unknown argument '--own'", "ramherd submit --help"),
        (["drill", "--agents", "0"], "--agents 0 is below 1", "ramherd drill --agents 10"),
        (["xyzzy"], "unknown verb 'xyzzy'", "see the verbs: ramherd --help"),
        (["--json", "jobs"], "expected a verb, got '--json'", "ramherd jobs --json"),
        (["up", "--port"], "--port needs a value", "write it like --port 8080"),
        (["exec", "claude", "-c"], "exec needs -- before the command", "ramherd exec -- claude -c"),
    ],
)
def test_a_wrong_call_is_one_line_with_a_hint(
    argv: list[str], message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and no usage of forty lines."""
    assert call(argv) == UsageError.exit_code
    assert capsys.readouterr().err == f"ramherd: {message}\n  hint: {hint}\n"


def test_an_example_ends_at_two_spaces() -> None:
    """What follows is its explanation; paragraphs after the examples are notes."""
    epilog = "examples:\n  ramherd ps --tree    children below\n  ramherd ps\n\nNote.\n"

    assert split_epilog(epilog) == (
        [Example("ramherd ps --tree", "children below"), Example("ramherd ps", "")],
        ["Note."],
    )
    assert split_epilog("Note.\n") == ([], ["Note."])


# Their output is a program on the terminal, a screen, or a script.
WITHOUT_JSON = ("attach", "completion", "top")


def has_json(parser: argparse.ArgumentParser) -> bool:
    """Each verb of a verb too."""
    inner = [
        one
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for one in action.choices.values()
    ]
    return all(map(has_json, inner)) if inner else "--json" in parser._option_string_actions


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in WITHOUT_JSON])
def test_every_verb_has_json(verb: str) -> None:
    """For programs: one object, or one a line."""
    assert has_json(make_parser(verb))


def test_help_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """All verbs with their options, or one."""
    every = json.loads(shown(["help", "--json"], capsys))["verbs"]
    (one,) = json.loads(shown(["help", "events", "--json"], capsys))["verbs"]

    assert [verb["verb"] for verb in every] == list(VERBS)
    assert one in every
    assert ["-f", "--follow"] in [option["flags"] for option in one["options"]]
