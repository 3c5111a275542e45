"""What Tab offers, by the words before it."""

import pytest

from ramherd.cli import complete
from ramherd.cli.complete import TabChoice, print_choices
from ramherd.cli.verbs import RARE_VERBS, VERBS
from ramherd.core.errors import StoreError


def offered(*words: str) -> list[str]:
    return [choice.word for choice in complete.complete(words).found]


def kind(*words: str) -> str:
    return complete.complete(words).kind


def test_verbs_come_first() -> None:
    """All that `--help` lists; one for experiments when its name is begun."""
    assert set(offered("")) == set(VERBS) - set(RARE_VERBS)
    assert offered() == offered("")
    assert offered("ev") == ["events"]
    assert offered("sim") == ["simulate"]
    assert offered("--v") == ["--version"]
    assert offered("nonsense", "") == []
    assert offered("help", "ev") == ["events"]


def test_options_come_from_the_parser_of_the_verb() -> None:
    """Those for experiments when no other begins like that."""
    assert offered("run", "--ag") == ["--agent"]
    assert offered("run", "--time-s") == ["--time-scale"]
    assert "--time-scale" not in offered("run", "--")
    assert "-j" in offered("run", "-")
    assert "-j" not in offered("run", "--")
    assert offered("hook", "install", "--pro") == ["--project"]


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--agent", "co"],
        ["run", "jobs.toml", "--agent", "co"],
        ["run", "--cwd", "x", "--agent", "co"],
        ["run", "--agent", "=", "co"],
    ],
)
def test_values_are_offered_where_they_stand(words: list[str]) -> None:
    """bash has the sign of equality as a word of its own."""
    assert offered(*words) == ["codex", "command"]


def test_one_word_with_a_sign_of_equality_is_whole() -> None:
    """As zsh and fish have it."""
    assert offered("run", "--agent=co") == ["--agent=codex", "--agent=command"]
    assert offered("run", "--agent", "=")[:1] == ["claude"]
    assert offered("run", "--pen", "cg") == ["cgroup2", "cgroup1"]


def test_the_shell_completes_files_and_programs() -> None:
    """The kind says which."""
    assert kind("run", "") == "files"
    assert kind("run", "--cwd", "") == "directories"
    assert kind("exec", "--", "cl") == "programs"
    assert kind("exec", "--", "claude", "") == "files"
    assert kind("run", "--", "wc", "-") == "files"
    assert offered("jobs", "--", "") == []


def test_a_verb_of_a_verb_has_its_own_words() -> None:
    """With the help of each."""
    found = list(complete.complete(["hook", ""]).found)

    assert [choice.word for choice in found] == ["install", "uninstall", "status"]
    assert all(choice.what for choice in found)
    assert offered("hook", "install", "") == ["claude"]
    assert offered("hook", "nonsense", "") == []
    assert offered("hook", "install", "claude", "") == []


def test_jobs_are_offered_by_number_and_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every argument that its help calls JOB, as often as it may be given."""
    jobs = [TabChoice("17", "lint, done"), TabChoice("lint", "job 17, done"), TabChoice("li\nnt")]
    monkeypatch.setitem(complete.LISTS, "JOB", lambda: iter(jobs))

    assert offered("show", "1") == ["17"]
    assert offered("retry", "17", "--allow", "x", "lint", "l") == ["lint", "li\nnt"]
    assert offered("events", "--job", "li") == ["lint", "li\nnt"]
    assert offered("show", "17", "") == []


def test_nothing_is_printed_for_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor for a name with a line break, which no shell could tell from two."""

    def fail() -> None:
        raise StoreError("the store is locked")

    monkeypatch.setitem(complete.LISTS, "JOB", fail)
    assert print_choices(["show", ""]) == 0
    assert capsys.readouterr() == ("", "")

    monkeypatch.setitem(
        complete.LISTS, "JOB", lambda: iter([TabChoice("a\nb"), TabChoice("c", "d")])
    )
    assert print_choices(["show", ""]) == 0
    assert capsys.readouterr().out == "words\nc\td\n"
