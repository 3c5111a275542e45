"""Without any rights: a throw-away user gets the polling pen, and everything still works."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ramherd
from integration.conftest import TAG
from ramherd.act.pens.selection import POLLED

NOBODY = 65534


def run_as_nobody(command: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True,
        timeout=120, check=False, **options,
    )  # fmt: skip


def python_for_everybody() -> str:
    """An interpreter that an ordinary user may execute: ours may lie in root's home."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        try:
            check = "import sys; sys.exit(sys.version_info < (3, 11))"
            if run_as_nobody([candidate, "-c", check]).returncode == 0:
                return candidate
        except PermissionError:
            continue
    pytest.fail("no Python >= 3.11 that an ordinary user may execute: apt-get install python3")


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory of that user's, with the package in it, outside of root's own."""
    made = Path(tempfile.mkdtemp(prefix="ramherd-user-", dir="/tmp"))
    shutil.copytree(Path(ramherd.__file__).parent, made / "lib/ramherd")
    for path in [made, *made.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    yield made
    shutil.rmtree(made)


@pytest.mark.xdist_group("serial")
@pytest.mark.skipif(os.getuid() != 0, reason="we are an ordinary user already: all tests show it")
def test_a_drill_as_an_ordinary_user(home: Path) -> None:
    """Polling pens, said so; all jobs done and nothing left."""
    env = {
        "PATH": os.environ["PATH"], "HOME": str(home), TAG: os.environ[TAG],
        "PYTHONPATH": str(home / "lib"), "RAMHERD_RUNTIME_DIR": str(home / "run"),
    }  # fmt: skip
    command = [python_for_everybody(), "-m", "ramherd", "drill", "--agents", "8", "--json"]
    done = run_as_nobody(command, env=env, cwd=home)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["pen"], summary["done"]) == ("polling", 8)
    assert summary["leftovers_ended"] >= 1
    assert f"ramherd: {POLLED}\n" in done.stderr
