"""The examples of docs/python.md run as they are."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from integration.conftest import Ramherd
from integration.service.conftest import Service, service  # noqa: F401 - a fixture

PAGE = Path(__file__).parents[3] / "docs/python.md"
# With the comment before it, if it has one.
EXAMPLE = re.compile(r"(?:<!-- (.*?) -->\n)?```python\n(.*?)```", re.DOTALL)
WITH_SERVICE, NOT_RUN = "run by the test with a service", "not run by the test: needs Claude Code"


def examples(comment: str = "") -> list[str]:
    return [code for found, code in EXAMPLE.findall(PAGE.read_text()) if found == comment]


def run(code: str, env: Mapping[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_run(ramherd: Ramherd) -> None:
    """One after another, as a reader would type them."""
    assert len(examples()) == 4
    assert len(examples(NOT_RUN)) == 1
    lines = run("\n".join(examples()), ramherd.env).splitlines()

    assert lines[0].startswith("2 of 2 jobs done, peak ")
    assert lines[1] == "hello"
    assert "tests: failed, exit status 3, {'why': 'exited', 'code': 3}" in lines
    assert lines[-2] == "True"
    assert lines[-1].endswith("has an unknown key 'comand' (did you mean 'command'?)")


def test_the_examples_of_a_client_run(service: Service) -> None:  # noqa: F811
    """The loop over its events ends."""
    (code,) = examples(WITH_SERVICE)
    lines = run(f"import ramherd\n{code}", service.ramherd.env).splitlines()

    assert lines[0].startswith("herd_submitted")
    assert lines[-1] == "done"
