"""What agents answered, were refused and failed with: at the end of a run, in `ramherd results` and
in `ramherd show`, with and without a service.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from integration.agents.shell_agent import Workplace
from integration.conftest import Ramherd, need
from integration.service.conftest import Service

# Talks like claude, as its environment says.
SCRIPT = """\
#!/bin/sh
cat > /dev/null
if [ -n "$OPEN" ]; then
    echo '{"type": "system", "subtype": "init", "session_id": "s-'$RAMHERD_JOB'"}'
    echo '{"type": "assistant", "message": {"id": "m1", "usage": {"input_tokens": 10}}}'
fi
printf '%s\\n' "$SAY"
printf '%s\\n' "$ERR" >&2
exit $CODE
"""
DENIALS = [
    {"tool_name": "Write", "tool_input": {"file_path": "CWD/a.txt"}},
    {"tool_name": "Bash", "tool_input": {"command": "npm test"}},
]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    made = tmp_path / "claude"
    made.write_text(SCRIPT)
    made.chmod(0o755)
    return made


def make_jobs(program: Path, cwd: Path) -> list[dict[str, Any]]:
    """One agent answers at length, one is refused everything, one fails at once; a command."""
    keys = {
        "agent": "claude", "prompt": "do it\nwell", "agent_program": str(program),
        "memory": "10MiB", "cwd": str(cwd), "worktree": False,
    }  # fmt: skip
    denials = json.loads(json.dumps(DENIALS).replace("CWD", str(cwd)))
    answers = {"type": "result", "result": "Fixed it.\n" + "x" * 9000, "total_cost_usd": 0.25}
    refused = {"type": "result", "result": "I could not.", "permission_denials": denials}
    return [
        {"name": "fix", **keys, "env": {"OPEN": "1", "SAY": json.dumps(answers)}},
        {"name": "tests", **keys, "env": {"OPEN": "1", "SAY": json.dumps(refused)}},
        {"name": "docs", **keys, "env": {"CODE": "55", "ERR": "\x1b[31mPlease log in\x1b[0m"}},
        {"name": "list", "command": "echo no such thing >&2; exit 4", "cwd": str(cwd)},
    ]


def run_text(ramherd: Ramherd, jobs: list[dict[str, Any]], *flags: str) -> list[str]:
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    done = ramherd.run("run", "-", *flags, stdin=text)
    assert done.returncode == 1, done.stderr
    warning = "warning   tests: the agent was denied Write(a.txt), Bash(npm test)\n"
    assert done.stderr.count(warning) == 1
    return done.stderr.splitlines()


def check_results(summary: dict[str, Any], program: Path, cwd: Path) -> None:
    fix, tests, docs, listed = summary["results"]
    assert (fix["state"], fix["cost_usd"], fix["denied"], fix["error"]) == ("done", 0.25, [], None)
    assert len(fix["result"]) == 9010
    assert fix["resume"] == f"cd {cwd} && {program} --resume {fix['session']}"
    assert (tests["state"], tests["result"]) == ("done", "I could not.")
    assert tests["denied"] == [
        {"tool": "Write", "what": "a.txt", "allow": "Write"},
        {"tool": "Bash", "what": "npm test", "allow": "Bash(npm test)"},
    ]
    assert (docs["state"], docs["exit_code"], docs["error"]) == ("failed", 55, "Please log in")
    # It has opened no session: there is nothing to go on with.
    assert (docs["session"], docs["resume"], docs["denied"]) == (None, None, [])
    assert (listed["error"], listed["denied"], listed["turns"]) == ("no such thing", None, None)


TELLS = [
    "done      tests: I could not.",
    "          but 2 tool calls were denied: Write(a.txt), Bash(npm test)",
    "          allow it: ramherd retry tests --allow Write --allow 'Bash(npm test)'",
    "failed    docs: exit status 55: Please log in",
    "          see: ramherd logs docs",
    "failed    list: exit status 4: no such thing",
]


def check_text(lines: list[str]) -> None:
    first = lines.index("done      fix: Fixed it.")
    assert lines[first + 1].startswith(f"          {'x' * 60}")
    assert [line for line in lines if line in TELLS] == TELLS
    (total,) = [line for line in lines if line.startswith("2 of 4 jobs done")]
    assert total.startswith("2 of 4 jobs done (2 failed, 1 with denied tool calls) in ")
    assert lines[-1] == "to allow an agent all its tools: --skip-permissions"


def test_the_results_of_a_run(ramherd: Ramherd, program: Path, tmp_path: Path) -> None:
    """At its end, afterwards, of one job, and when its output was removed."""
    jobs = make_jobs(program, tmp_path)
    check_text(run_text(ramherd, jobs))
    check_text(ramherd.run("results").stdout.splitlines())
    later = json.loads(ramherd.run("results", "--json").stdout)
    check_results(later, program, tmp_path)
    summary = ramherd.json(jobs)
    again = json.loads(ramherd.run("results", summary["herd"], "--json").stdout)
    assert set(summary) - {"exit_code", "lines", "hint"} == set(again)
    for one, other in zip(summary["results"], again["results"], strict=True):
        assert one | {"wall_s": 0} == other | {"wall_s": 0}

    shown = ramherd.run("show", "tests").stdout.splitlines()
    assert "denied     Write(a.txt)" in shown
    assert "allow      ramherd retry tests --allow Write --allow 'Bash(npm test)'" in shown
    assert "prompt     do it" in shown
    assert "           well" in shown
    assert "answer     I could not." in shown
    session = again["results"][1]["session"]
    assert f"continue   cd {tmp_path} && {program} --resume {session}" in shown
    assert any(line.startswith("runs       1  done after ") for line in shown)
    assert ramherd.run("show", "fix", "--full").stdout.count("x" * 60) >= 9000 // 80
    assert json.loads(ramherd.run("show", "docs", "--json").stdout)["error"] == "Please log in"

    ramherd.run("prune", "--keep", "0")
    gone = ramherd.run("show", "docs").stdout
    assert "(removed by ramherd prune or log_total)" in gone
    assert "error      Please log in" in gone
    check_text(ramherd.run("results", again["herd"]).stdout.splitlines())
    # In an older herd the names mean other jobs.
    older = ramherd.run("results", later["herd"]).stdout
    assert "2 of 4 jobs done (2 failed, 1 with denied tool calls)" in older
    assert "ramherd retry tests" not in older


def test_the_results_of_a_service(service: Service, program: Path, tmp_path: Path) -> None:
    """The same text and the same object."""
    check_text(run_text(service.ramherd, make_jobs(program, tmp_path)))
    (herd,) = service.client.herds()
    served = service.client.summary(herd["herd"])
    check_results(served, program, tmp_path)
    check_text(service.ramherd.run("results").stdout.splitlines())
    printed = json.loads(service.ramherd.run("results", "--json").stdout)
    for summary in (printed, served):
        for result in summary["results"]:
            del result["log"]  # below the state directory of whoever asks
    assert printed == served
    job = service.job("tests")
    shown = json.loads(service.ramherd.run("show", "tests", "--json").stdout)
    assert shown | job == shown
    assert job["denied"] == served["results"][1]["denied"]


def test_the_changes_of_agents_are_in_the_results(ramherd: Ramherd, tmp_path: Path) -> None:
    """Files and lines on a branch; also a session whose worktree was removed can be continued."""
    need("git", "git")
    place = Workplace(tmp_path, ramherd.env)
    jobs = [place.job("writes", "seq 3 > new"), place.job("reads", "cat file")]
    summary = ramherd.json(jobs)
    writes, reads = summary["results"]
    lines = ramherd.run("results").stdout.splitlines()

    assert summary["done"] == 2, summary["lines"]
    assert (writes["files_changed"], writes["lines_added"], writes["lines_removed"]) == (1, 3, 0)
    assert f"          1 file +3 -0 on {place.branch_of('writes')}; $0.50" in lines
    assert "          no file changed; $0.50" in lines
    assert lines[-1] == "review: ramherd diff writes   take it: ramherd merge writes"
    assert writes["resume"].startswith(f"cd {writes['worktree']} && ")
    for result in (writes, reads):
        done = subprocess.run(
            result["resume"], shell=True, env={**place.env, "RAMHERD_JOB": result["session"]},
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert (done.returncode, "Through." in done.stdout) == (0, True), done.stderr


def test_a_herd_that_is_not_there(ramherd: Ramherd) -> None:
    """One line each, with what to do."""
    none = ramherd.run("results")
    ramherd.json([{"name": "alpha", "command": "true"}])
    other, job = ramherd.run("results", "nope"), ramherd.run("show", "alpho")
    assert ramherd.run("exec", "--", "true").returncode == 0
    newest = json.loads(ramherd.run("results", "--json").stdout)
    # A session on the terminal is no herd that anybody asks the results of.
    assert [result["job"] for result in newest["results"]] == ["alpha"]

    assert (none.returncode, none.stderr.splitlines()[0]) == (2, "ramherd: no herd has run yet")
    assert (other.returncode, other.stderr.splitlines()[0]) == (2, "ramherd: no herd 'nope'")
    assert job.returncode == 2
    assert "did you mean 'alpha'?" in job.stderr
