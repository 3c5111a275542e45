"""What came of each job, at 80 columns."""

from typing import Any

import pytest

from ramherd.core.reasons import reason_from_json
from ramherd.show.cost_text import render_cost, render_usd
from ramherd.show.reasons import render_reason
from ramherd.show.result_lines import (
    INDENT,
    render_address,
    render_call,
    render_footer,
    render_number,
    render_result,
    render_results,
    render_spent,
    render_total_cost,
)

DENIED = [
    {"tool": "Write", "what": "tests/test_a.py", "allow": "Write"},
    {"tool": "Bash", "what": "npm test", "allow": "Bash(npm test)"},
]
ANSWER = """\
I looked at the code.

## What I did
- fixed the import order in src/app/main.py, which was wrong for as long as anybody remembers
- ran\truff

And more.
"""


def agent(name: str, state: str = "done", **changes: Any) -> dict[str, Any]:
    """A result of `run --json`, as of an agent in a worktree of its own."""
    return {
        "job": name, "state": state, "runs": 1, "reason": {"why": "said_done"}, "turns": 4,
        "tokens_in": 12_000, "tokens_out": 340, "cost_usd": 0.0812,
        "result": "Fixed 3 lint errors in src/a.py and removed one import.",
        "branch": "ramherd/fix-4k2j9x1q", "files_changed": 2, "lines_added": 14, "lines_removed": 3,
        "denied": [], "error": None, "resume": "cd /w && claude --resume s", **changes,
    }  # fmt: skip


def command(name: str, state: str = "done", **changes: Any) -> dict[str, Any]:
    silent = ("turns", "tokens_in", "tokens_out", "cost_usd", "result", "branch", "files_changed",
              "denied", "resume")  # fmt: skip
    return agent(name, state, **{**dict.fromkeys(silent), **changes})


def exited(code: int) -> dict[str, Any]:
    return {"why": "exited", "code": code}


NEVER_BEGAN = {"turns": 0, "tokens_in": 0, "tokens_out": 0, "cost_usd": 0.0, "resume": None}
FAILED = agent(
    "2 docs", "failed", reason=exited(55), error="Authentication required", result=None,
    branch=None, files_changed=None, **NEVER_BEGAN,
)  # fmt: skip
REFUSED = agent(
    "add-tests", result="I could not write the tests: the tool was not allowed.", denied=DENIED,
    branch=None, files_changed=0,
)  # fmt: skip


def test_a_fallback_model_has_a_line() -> None:
    """With its reason, below what the agent took."""
    why = {"why": "step_down", "model": "haiku", "usual": "opus"}
    *_first, last = render_result(agent("fix", fallback=why))

    assert last == f"{INDENT}model: {render_reason(reason_from_json(why))}"


def test_one_job() -> None:
    """The first lines of its answer, without blank ones, then what it changed and took."""
    assert render_results([agent("1-fix-lint", result=ANSWER)]) == [
        "done      1-fix-lint: I looked at the code.",
        "          ## What I did",
        "          - fixed the import order in src/app/main.py, which was wrong for as",
        "          long as anybody remembers",
        "          - ran   ruff",
        "          And more.",
        "          2 files +14 -3 on ramherd/fix-4k2j9x1q; 4 turns, 12k tokens, $0.08",
    ]


def test_a_few_jobs() -> None:
    """One is done, one was denied everything, one failed: none looks like another."""
    assert render_results([agent("fix-lint"), REFUSED, FAILED]) == [
        "done      fix-lint: Fixed 3 lint errors in src/a.py and removed one import.",
        "          2 files +14 -3 on ramherd/fix-4k2j9x1q; 4 turns, 12k tokens, $0.08",
        "done      add-tests: I could not write the tests: the tool was not allowed.",
        "          but 2 tool calls were denied: Write(tests/test_a.py), Bash(npm test)",
        "          allow it: ramherd retry add-tests --allow Write --allow 'Bash(npm test)'",
        "          no file changed; 4 turns, 12k tokens, $0.08",
        "failed    2 docs: exit status 55: Authentication required",
        "          see: ramherd logs '2 docs'",
    ]


def test_many_jobs_get_a_line_each() -> None:
    """Those with trouble first, twenty at most; all of them where somebody asks for that."""
    many = [agent(f"job-{number}", result=ANSWER) for number in range(30)]
    lines = render_results([*many, REFUSED, FAILED])

    assert lines[:3] == [
        "done      add-tests: (2 tool calls denied) I could not write the tests: the t...",
        "failed    2 docs: exit status 55: Authentication required",
        "done      job-0: I looked at the code. ## What I did - fixed the import order...",
    ]
    assert lines[20:] == [
        "          and 12 more: ramherd results",
        "          see: ramherd logs '2 docs'",
    ]
    everything = render_results([*many, REFUSED, FAILED], every=True)
    assert sum(line.startswith("done") for line in everything) == 31
    assert max(map(len, lines)) <= 80


def test_a_long_answer_is_cut() -> None:
    """Fewer lines of each, the more jobs there are; a mark says that there is more."""
    long = "\n".join(f"line {number}" for number in range(100))

    assert len(render_results([agent("a", result=long)])) == 9
    assert render_results([agent("a", result=long)])[7] == f"{INDENT}line 7 ..."
    assert len(render_results([agent("a", result=long)] * 3)) == 3 * 5
    assert len(render_results([agent("a", result=long)] * 4)) == 4 * 3


def test_commands_that_are_done_need_no_line() -> None:
    """Those that failed have theirs, with what they printed last."""
    failed = command("b", "failed", reason=exited(1), error="cat: /nope: No such file")

    assert render_results([command("a"), failed]) == [
        "failed    b: exit status 1: cat: /nope: No such file",
        "          see: ramherd logs b",
    ]


def test_an_error_is_not_shown_twice() -> None:
    """The reason of an agent that gave up has it already."""
    reason = {"why": "gave_up", "what": "credit is too low"}
    line = render_results([agent("a", "failed", reason=reason, error="credit is too low")])[0]

    assert line == "failed    a: the agent gave up: credit is too low"


def test_after_an_interrupt_the_sessions_can_go_on() -> None:
    """A job that never ran has nothing to tell."""
    stopped = agent("a", "cancelled", reason={"why": "interrupted"}, result=None)
    waiting = agent("b", "cancelled", reason={"why": "interrupted"}, runs=0, **NEVER_BEGAN)

    assert render_results([stopped, waiting]) == [
        "cancelled a: interrupted",
        "          2 files +14 -3 on ramherd/fix-4k2j9x1q; 4 turns, 12k tokens, $0.08",
        "          see: ramherd logs a; go on: ramherd attach a",
    ]


def test_a_job_that_runs_is_told_as_such() -> None:
    """It cannot be continued by hand meanwhile."""
    runs = agent("a", "running", result=None, reason={"why": "asked"}, files_changed=None)

    assert render_results([runs])[0].startswith("running   a: ")
    assert render_results([runs])[-1] == "          see: ramherd logs a"


def test_a_job_whose_ramherd_was_killed_is_lost() -> None:
    """It does not run, whatever the store has."""
    reason = {"why": "owner_lost", "pid": 7}
    lines = render_results([agent("one", "running", reason=reason)])
    assert lines[0] == (
        "lost      one: the ramherd process of this job (pid 7) is gone "
        "(hint: ramherd run --resume)"
    )


def test_commands_name_a_job_of_an_older_herd_by_its_number() -> None:
    """A newer herd may have a job of the same name."""
    old = agent("one", number=17, by_number=True, denied=DENIED)
    assert any("ramherd retry 17 --allow" in line for line in render_results([old]))
    assert render_footer([old])[0] == "review: ramherd diff 17   take it: ramherd merge 17"


@pytest.mark.parametrize(
    ("result", "address"),
    [
        ({"job": "fix lint", "number": 17}, "'fix lint'"),
        ({"job": "3", "number": 17}, "17"),
        ({"job": "a" * 25, "number": 17}, "17"),
        ({"job": "a" * 25, "number": None}, "a" * 25),
    ],
)
def test_a_command_has_the_name_of_a_job_if_it_is_short(
    result: dict[str, Any], address: str
) -> None:
    """Digits would be taken for the number of another job. An older service has no numbers."""
    assert render_address(result) == address


def test_what_was_not_committed_is_named() -> None:
    """Files that were left out, and a worktree that was left alone. Ignored files are no news."""
    left_out = [{"path": f"{number}.bin", "why": "11 MiB"} for number in range(7)]
    left_out.append({"path": "node_modules/", "why": "ignored"})
    lines = render_results(
        [agent("a", left_out=left_out, worktree_note="in the middle of a rebase: left alone")]
    )

    assert lines[-2:] == [
        "          worktree: in the middle of a rebase: left alone",
        "          not committed: 0.bin (11 MiB), 1.bin (11 MiB), 2.bin (11 MiB), "
        "3.bin (11 MiB), 4.bin (11 MiB) and 2 more",
    ]


def test_changes_that_were_dropped_are_gone() -> None:
    """There is nothing to review."""
    dropped = agent("a", branch=None)

    assert render_results([dropped])[1].startswith("          2 files +14 -3 (dropped); ")
    assert render_footer([dropped]) == []


def test_a_long_branch_has_a_line_of_its_own() -> None:
    """Nothing is wider than the terminal but what is to be typed or copied."""
    branch = f"ramherd/{'x' * 40}-4k2j9x1q"
    lines = render_results([agent("a", branch=branch)])

    assert lines[1:] == [
        f"          2 files +14 -3 on {branch}",
        "          4 turns, 12k tokens, $0.08",
    ]


def test_nothing_that_an_agent_writes_reaches_the_terminal_as_a_command() -> None:
    """Names, answers, errors, rules: no control sequence."""
    evil = "\x1b[2J\x07\r\u202e"
    denied = [{"tool": evil, "what": evil, "allow": evil}]
    made = agent(f"a{evil}", "failed", result=evil, error=evil, denied=denied, branch=evil,
                 worktree_note=evil)  # fmt: skip
    done = agent(f"a{evil}", result=f"x\n{evil}\n{evil}", denied=denied)

    for results in ([made], [done], [made, done] * 10):
        assert all(line.isprintable() for line in render_results(results))
        assert all(line.isprintable() for line in render_footer(results))


def test_the_footer_has_commands_that_work() -> None:
    """For the first branch with changes, and how to allow all tools."""
    assert render_footer([command("a")]) == []
    assert render_footer([REFUSED, agent("a b")]) == [
        "review: ramherd diff 'a b'   take it: ramherd merge 'a b'",
        "to allow an agent all its tools: --skip-permissions",
    ]
    name = "x" * 40
    assert render_footer([agent(name)]) == [
        f"review: ramherd diff {name}",
        f"take it: ramherd merge {name}",
    ]


def test_a_tool_without_a_rule_is_allowed_in_settings() -> None:
    """cursor accepts no rules for a single run."""
    denied = [{"tool": "shell", "what": "x" * 100, "allow": ""}]
    lines = render_results([agent("a", denied=denied)])

    assert lines[1:3] == [
        "          but 1 tool call was denied:",
        f"          shell({'x' * 37}...)",
    ]
    assert "in the agent's own settings" in lines[3]
    assert render_call({"tool": "shell", "what": "", "allow": ""}) == "shell"
    path = {"tool": "Write", "what": f"/home/{'x' * 100}/a.txt", "allow": "Write"}
    assert render_call(path) == f"Write(...{'x' * 31}/a.txt)"


@pytest.mark.parametrize(
    ("cost", "text"),
    [(0.0, "$0.00"), (0.0018, "$0.0018"), (0.0099, "$0.0099"), (0.01, "$0.01"), (12.345, "$12.35")],
)
def test_money(cost: float, text: str) -> None:
    """Small amounts are not zero."""
    assert render_usd(cost) == text


def test_what_is_not_known_is_not_zero() -> None:
    """An unknown cost is named, an estimate is marked; also in the sum."""
    known, unknown = agent("a", cost_usd=0.25), agent("b", cost_usd=None)
    guessed = agent("c", cost_usd=0.5, cost_is_estimate=True)

    assert render_cost(unknown) == ""
    assert "cost unknown" in render_spent(unknown)
    assert render_cost(guessed) == "~$0.50"
    assert render_total_cost([]) == ""
    assert render_total_cost([command("a"), FAILED]) == ""
    assert render_total_cost([unknown]) == "cost unknown"
    assert render_total_cost([known, unknown]) == "$0.25 and 1 job of unknown cost"
    assert render_total_cost([known, guessed]) == "~$0.75"


@pytest.mark.parametrize(
    ("number", "text"),
    [(9999, "9999"), (10_000, "10k"), (999_499, "999k"), (999_500, "1.0M"), (12_300_000, "12.3M")],
)
def test_numbers_of_tokens(number: int, text: str) -> None:
    """Three figures at most."""
    assert render_number(number) == text
