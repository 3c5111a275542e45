"""The prompt of a session that goes on."""

import pytest

from ramherd.agents.resume_prompt import GO_ON, PLANNED, render_resume_prompt
from ramherd.core.model import Reason, Why


@pytest.mark.parametrize(
    ("why", "says"),
    [
        (Why.PATIENCE_OVER, "Ramherd stopped you to give memory to other work"),
        (Why.SERVICE_STOPS, "Ramherd was restarted"),
        (Why.INTERRUPTED, "The user interrupted ramherd"),
        (Why.UNKNOWN, "Ramherd stopped you"),
    ],
)
def test_a_planned_stop_explains_exit_code_137(why: Why, says: str) -> None:
    """The agent does not take the end of its tool for a failure, or for a kill by the kernel."""
    prompt = render_resume_prompt(Reason(why))

    assert prompt.startswith(says)
    assert "exit code 137 or 143" in prompt
    assert prompt.endswith(f"{PLANNED} {GO_ON}")


@pytest.mark.parametrize("why", [Why.OOM_KILL, Why.OVERLOAD, Why.SIGNALLED])
def test_what_ramherd_did_not_do_is_not_called_planned(why: Why) -> None:
    """After a kill by the kernel exit code 137 means what it says."""
    prompt = render_resume_prompt(Reason(why))

    assert "137" not in prompt
    assert prompt.endswith(GO_ON)


def test_a_herd_that_goes_on_names_what_ended_it() -> None:
    """`run --resume` keeps the reason of the interruption."""
    continued = Reason(Why.CONTINUED, after=Why.INTERRUPTED.value)

    assert render_resume_prompt(continued) == render_resume_prompt(Reason(Why.INTERRUPTED))


def test_an_agent_is_told_what_it_may_use_now() -> None:
    """It was denied the tool before, and would not try again by itself."""
    prompt = render_resume_prompt(Reason(Why.ALLOWED, rules="Bash(npm test)"))

    assert "allowed what you were denied before: Bash(npm test)." in prompt
    assert prompt.endswith(GO_ON)


def test_the_prompt_is_short() -> None:
    """Every resume pays for it: 100 tokens."""
    assert all(
        len(render_resume_prompt(Reason(why))) < 420 for why in Why if why is not Why.CONTINUED
    )
