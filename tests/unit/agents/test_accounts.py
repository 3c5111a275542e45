"""Which jobs share an account."""

from ramherd.agents.accounts import with_accounts
from ramherd.core.model import Brief, Job
from support.make import job


def accounts(*jobs: Job, **inherited: str) -> list[str]:
    found = with_accounts(jobs, {"HOME": "/home/a", **inherited})
    return [one.brief.account if one.brief is not None else "none" for one in found]


def ask(name: str, agent: str = "claude", **env: str) -> Job:
    return job(name, brief=Brief(agent, "do it"), env=env)


def test_what_selects_the_account() -> None:
    """The agent, its key and its directories; no other variable, and none for a command."""
    plain, same, keyed, other, command = accounts(
        ask("a"), ask("b", EDITOR="vi"), ask("c", ANTHROPIC_API_KEY="k"), ask("d", "codex"),
        job("e"),
    )  # fmt: skip

    assert plain == same
    assert len({plain, keyed, other, command}) == 4
    assert command == "none"


def test_a_variable_of_the_job_counts_for_more() -> None:
    (own,) = accounts(ask("a", ANTHROPIC_API_KEY="k"), ANTHROPIC_API_KEY="other")
    (inherited,) = accounts(ask("a"), ANTHROPIC_API_KEY="k")

    assert own == inherited


def test_no_key_is_in_it() -> None:
    """Twelve hexadecimal digits."""
    (found,) = accounts(ask("a", ANTHROPIC_API_KEY="sk-secret"))

    assert len(found) == 12
    assert int(found, 16)
