"""Which files of a worktree are not committed, and why."""

import pytest

from ramherd.decide.left_out import (
    MOST_BYTES,
    MOST_LISTED,
    ChangedFile,
    choose_listed,
    explain_left_out,
    is_committed,
)

SECRET, LARGE = "may hold secrets", "larger than 10 MiB"


@pytest.mark.parametrize(
    "name",
    [
        ".env", ".env.local", ".ENV", ".envrc", "prod.env", "deploy/.env.production",
        "id_rsa", "id_ed25519", "id_rsa.bak", "server.pem", "a/b/tls.KEY", "cert.p12", "cert.pfx",
        "credentials", "aws/credentials", "credentials.json", ".credentials.json",
        "client_secret_12.json", "service-account-prod.json", "secrets.yaml", ".netrc", ".pgpass",
        ".git-credentials", "debug.keystore", "putty.ppk",
    ],
)  # fmt: skip
def test_files_that_may_hold_secrets_are_left_out(name: str) -> None:
    """By their names, in any directory and in any case; not if the repository already has them."""
    assert explain_left_out(ChangedFile(name)) == SECRET
    assert not is_committed(ChangedFile(name))
    assert explain_left_out(ChangedFile(name, is_tracked=True)) == ""


@pytest.mark.parametrize(
    "name",
    [
        "main.py", "env.py", "environment.yml", ".env.example", ".env.sample", ".env.template",
        ".env.dist", "id_rsa.pub", "keys.py", "credentials.py", "credentials/a.txt", "monkey.txt",
        ".env/readme", "secrets.md", "my-id_rsa-notes.md",
    ],
)  # fmt: skip
def test_other_files_are_committed(name: str) -> None:
    """Examples and public keys are meant to be published; names of directories do not count."""
    assert explain_left_out(ChangedFile(name)) == ""
    assert is_committed(ChangedFile(name))


def test_large_files_are_left_out() -> None:
    """Also if the repository already has them: each version stays in it."""
    assert explain_left_out(ChangedFile("a", bytes=MOST_BYTES)) == ""
    assert explain_left_out(ChangedFile("a", bytes=MOST_BYTES + 1)) == LARGE
    assert explain_left_out(ChangedFile("a", bytes=MOST_BYTES + 1, is_tracked=True)) == LARGE
    assert explain_left_out(ChangedFile(".env", bytes=MOST_BYTES + 1)) == LARGE


def test_what_git_cannot_commit_is_left_out() -> None:
    """Ignored files, unreadable files, and nested repositories."""
    assert explain_left_out(ChangedFile(".env", is_ignored=True)) == "ignored"
    assert explain_left_out(ChangedFile("a", is_readable=False)) == "not readable"
    assert explain_left_out(ChangedFile("inner/")) == "a git repository of its own"
    for file in (ChangedFile("a", is_ignored=True), ChangedFile("inner/")):
        assert not is_committed(file)


@pytest.mark.parametrize(
    ("letters", "why", "committed"),
    [
        ("C", "", True),
        ("M", "changes inside of a submodule", False),
        ("U", "changes inside of a submodule", False),
        ("CMU", "changes inside of a submodule", True),
    ],
)
def test_of_a_submodule_its_commit_is_recorded(letters: str, why: str, committed: bool) -> None:
    """Uncommitted changes inside the submodule cannot be committed."""
    file = ChangedFile("lib", is_tracked=True, submodule=letters)

    assert (explain_left_out(file), is_committed(file)) == (why, committed)
    assert not is_committed(ChangedFile("lib", submodule=letters, is_ignored=True))


def test_what_is_left_out_is_listed_with_why() -> None:
    """Ignored files come last, and files beyond the hundredth are counted."""
    ignored = [ChangedFile(f"cache/{number}", is_ignored=True) for number in range(MOST_LISTED)]
    files = [*ignored, ChangedFile("main.py"), ChangedFile(".env"), ChangedFile("id_rsa")]
    listed, more = choose_listed(files)

    assert listed[:3] == [
        {"path": ".env", "why": SECRET},
        {"path": "id_rsa", "why": SECRET},
        {"path": "cache/0", "why": "ignored"},
    ]
    assert (len(listed), more) == (MOST_LISTED, 2)
    assert choose_listed(files[:1]) == ([{"path": "cache/0", "why": "ignored"}], 0)
