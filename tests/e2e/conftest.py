"""Each agent with a home of its own, and the model that all of them talk to."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.agent_home import AGENTS, INSTALLED, Home, make_home
from llm import LLM


@pytest.fixture
def llm() -> Iterator[LLM]:
    with LLM() as made:
        yield made


@pytest.fixture(scope="session")
def installed() -> None:
    """The agents of tests/e2e/package.json: in CI they have to be there."""
    if not INSTALLED.is_dir():
        message = "the agents are not installed: make agents"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


@pytest.fixture(params=AGENTS)
def home(request: pytest.FixtureRequest, installed: None, tmp_path: Path, llm: LLM) -> Home:
    """Once for each agent."""
    return make_home(request.param, tmp_path, llm.url)


@pytest.fixture
def claude(installed: None, tmp_path: Path, llm: LLM) -> Home:
    return make_home("claude", tmp_path, llm.url)
