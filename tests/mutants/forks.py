"""A pytest plugin that tries mutants, each in a fork of a pytest that has collected its tests.

mutmut starts pytest again for each mutant, which takes a second or two; a fork takes milliseconds.
The variable MUTANTS_TO_RUN names the file with the work, MUTANTS_RAN the file for the exit codes.
"""

import gc
import json
import math
import os
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import pytest
from _pytest.runner import CallInfo
from mutmut.mutation.trampoline import set_mutant_under_test

# A mutant that uses more than this, and ten times what its tests take, is an endless loop.
SPARE_CPU_S = 5
MOST_BYTES = 4 << 30
NOTICED = 1


def pytest_runtestloop(session: pytest.Session) -> bool:
    work = json.loads(Path(os.environ["MUTANTS_TO_RUN"]).read_text())
    items = {item.nodeid: item for item in session.items}
    # A collection in the fork would copy every page that the parent has.
    gc.freeze()
    if try_mutant("", session.items, 60) or not try_mutant("fail", session.items, 60):
        pytest.exit("the tests do not pass without a mutant, or nothing makes them fail", 1)
    codes = {}
    for number, (name, tests) in enumerate(work.items()):
        chosen = [items[test] for test, _ in tests]
        cpu_s = SPARE_CPU_S + math.ceil(10 * sum(seconds for _, seconds in tests))
        codes[name] = try_mutant(name, chosen, cpu_s)
        if number % 100 == 0:
            print(f"{number} of {len(work)}", file=sys.__stderr__)
    Path(os.environ["MUTANTS_RAN"]).write_text(json.dumps(codes))
    return True


def try_mutant(name: str, items: Sequence[pytest.Item], cpu_s: int) -> int:
    """0 when all of the tests pass; a mutant that does not come to an end is killed by a signal."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        set_mutant_under_test(name)
        os._exit(NOTICED if any(is_failed(item) for item in items) else 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def is_failed(item: pytest.Item) -> bool:
    """Without the report of a failure: to write one takes longer than most of the tests."""
    hooks = item.ihook
    steps: list[tuple[Literal["setup", "call", "teardown"], Callable[[], object]]] = [
        ("setup", lambda: hooks.pytest_runtest_setup(item=item)),
        ("call", lambda: hooks.pytest_runtest_call(item=item)),
        ("teardown", lambda: hooks.pytest_runtest_teardown(item=item, nextitem=None)),
    ]
    item._initrequest()  # type: ignore[attr-defined]
    for when, step in steps:
        call = CallInfo.from_call(step, when)
        if call.excinfo is not None:
            return True
        # Teardown of some fixtures looks for it.
        hooks.pytest_runtest_makereport(item=item, call=call)
    return False
