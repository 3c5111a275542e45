"""`make mutants`: mutmut changes decide/ in thousands of ways; a unit test has to notice each.

mutmut makes the mutants and finds the tests of each function; forks.py tries them. Each survivor
stands in survivors.toml with its reason. In admit, budget and preempt only those are allowed that
change nothing (`equivalent = true`); elsewhere one in ten.

python -m mutants.run [MUTANTS...]     names as mutmut has them, such as 'ramherd.decide.budget*'
"""

import contextlib
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mutmut.mutation.diff_apply import get_diff_for_mutant

ROOT = Path(__file__).parents[2]
COPY = ROOT / "mutants"
MUTMUT = Path(sys.executable).with_name("mutmut")
EXPLAINED = Path(__file__).with_name("survivors.toml")
STRICT = ("decide/governor/admit.py", "decide/budget.py", "decide/governor/preempt.py")
MOST_SHARE = 0.1
ANY_MUTANT = "ramherd.decide.pruning.x_choose_excess__mutmut_1"
# Exit codes of the tests in mutmut's files: these are a pass, and no test at all.
PASSED, UNTESTED = 0, 33


class Mutant(NamedTuple):
    name: str
    file: str
    survived: bool


class Change(NamedTuple):
    """What identifies a survivor: numbers in mutmut's names change with the code."""

    file: str
    was: str
    becomes: str


def run(names: list[str]) -> None:
    """From nothing: results of tests that have changed since would be kept. mutmut makes the
    mutants and finds the tests of each function; one mutant is the fewest that it will run.
    """
    shutil.rmtree(COPY, ignore_errors=True)
    subprocess.run([MUTMUT, "run", "--max-children", "1", ANY_MUTANT], cwd=ROOT, check=True)
    work = {}
    stats = json.loads((COPY / "mutmut-stats.json").read_text())
    for path in find_metas():
        meta = json.loads(path.read_text())
        for name in meta["exit_code_by_key"]:
            tests = stats["tests_by_mangled_function_name"].get(name.rpartition("__mutmut_")[0], [])
            seconds = [(test, stats["duration_by_test"][test]) for test in tests]
            work[name] = sorted(seconds, key=lambda one: one[1])
    codes = run_forks(
        {name: tests for name, tests in work.items() if tests and is_named(name, names)}
    )
    for path in find_metas():
        meta = json.loads(path.read_text())
        for name in meta["exit_code_by_key"]:
            untested = UNTESTED if not work[name] and is_named(name, names) else None
            meta["exit_code_by_key"][name] = codes.get(name, untested)
        path.write_text(json.dumps(meta))


def run_forks(work: dict[str, list[tuple[str, float]]]) -> dict[str, int]:
    """The exit code of each mutant's tests (tests/mutants/forks.py)."""
    todo, ran = COPY / "to_run.json", COPY / "ran.json"
    todo.write_text(json.dumps(work))
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
    paths = os.pathsep.join((str(COPY / "src"), str(COPY / "tests")))
    subprocess.run(
        [
            sys.executable, "-m", "pytest", "--rootdir=.", "-p", "mutants.forks",
            *config["pytest_add_cli_args"], *config["pytest_add_cli_args_test_selection"],
        ],
        cwd=COPY, check=True,
        env=os.environ
        | {"PYTHONPATH": paths, "MUTANTS_TO_RUN": str(todo), "MUTANTS_RAN": str(ran)},
    )  # fmt: skip
    return dict(json.loads(ran.read_text()))


def find_metas() -> list[Path]:
    return sorted((COPY / "src/ramherd/decide").rglob("*.meta"))


def is_named(mutant: str, names: list[str]) -> bool:
    return not names or any(fnmatch.fnmatch(mutant, one) for one in names)


def read_mutants(names: list[str]) -> Iterator[Mutant]:
    for path in find_metas():
        file = str(path.relative_to(COPY / "src/ramherd")).removesuffix(".meta")
        codes = json.loads(path.read_text())["exit_code_by_key"]
        for name, code in codes.items():
            if code is not None and is_named(name, names):
                yield Mutant(name, file, code in (PASSED, UNTESTED))


def read_change(mutant: Mutant) -> Change:
    """mutmut finds its files from the current directory."""
    with contextlib.chdir(ROOT):
        shown = get_diff_for_mutant(mutant.name, path=f"src/ramherd/{mutant.file}").splitlines()
    lines = [line for line in shown if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    was, becomes = (
        " ".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+"
    )
    return Change(mutant.file, was, becomes)


def read_explained() -> dict[Change, bool]:
    """Whether each is equivalent."""
    table = tomllib.loads(EXPLAINED.read_text())
    return {
        Change(one["file"], one["was"], one["becomes"]): one.get("equivalent", False)
        for one in table["survivor"]
        if one["why"]
    }


def find_faults(mutants: list[Mutant], explained: dict[Change, bool]) -> Iterator[str]:
    number = Counter(one.file for one in mutants)
    survivors = [one for one in mutants if one.survived]
    left = Counter(one.file for one in survivors)
    for file in sorted(number):
        print(f"{left[file]:4} of {number[file]:4} survive in {file}")
    others = [one for one in mutants if one.file not in STRICT]
    lenient = [one for one in survivors if one.file not in STRICT]
    if len(lenient) > MOST_SHARE * len(others):
        yield f"{len(lenient)} of {len(others)} survive outside of {', '.join(STRICT)}"
    for mutant in survivors:
        change = read_change(mutant)
        equivalent = explained.get(change)
        if equivalent is None:
            yield f"not explained: {mutant.name}\n  {change.was}\n  {change.becomes}"
        elif mutant.file in STRICT and not equivalent:
            yield f"has to be noticed: {mutant.name}\n  {change.was}\n  {change.becomes}"


def find_stale(mutants: list[Mutant], explained: dict[Change, bool]) -> Iterator[str]:
    """Explained, and noticed by a test all the same, or no longer there."""
    survive = {read_change(one) for one in mutants if one.survived}
    for change in explained.keys() - survive:
        yield f"does not survive: {change.file}\n  {change.was}\n  {change.becomes}"


def main() -> int:
    names = sys.argv[1:]
    run(names)
    mutants = list(read_mutants(names))
    explained = read_explained()
    faults = list(find_faults(mutants, explained))
    if not names:
        faults += find_stale(mutants, explained)
    print(*faults, sep="\n")
    print(f"{sum(one.survived for one in mutants)} of {len(mutants)} survive, {len(faults)} faults")
    return 1 if faults or not mutants else 0


if __name__ == "__main__":
    sys.exit(main())
