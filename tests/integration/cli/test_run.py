"""`ramherd run`: what a user gets for any command."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from integration.conftest import Ramherd, await_, ours

CONTRACT = {
    "herd", "jobs", "done", "failed", "cancelled", "wall_s", "budget_bytes", "peak_bytes",
    "oom_kills", "limit_kills", "preempted", "recycled", "held_s", "redone_s", "leftovers_ended",
    "residue_bytes", "pen", "level_changes", "supervisor", "results", "holds",
}  # fmt: skip
RESULT = {
    "job", "state", "end", "exit_code", "runs", "peak_bytes", "wall_s", "held_s", "log", "reason",
    "session", "turns", "tokens_in", "tokens_out", "cost_usd", "cost_is_estimate", "result",
    "model", "worktree",
    "branch", "files_changed", "lines_added", "lines_removed", "denied", "error", "resume",
    "left_out", "worktree_note", "fallback", "merged_into", "number",
}  # fmt: skip


def hold(size_mib: int, for_s: float) -> list[str]:
    """A command that holds so much memory for so long."""
    code = f"import time; b = bytearray({size_mib} << 20); b[::4096] = b'x' * len(b[::4096]); "
    return [sys.executable, "-I", "-S", "-c", code + f"time.sleep({for_s})"]


def test_lines_of_stdin_become_jobs(ramherd: Ramherd) -> None:
    """One job a line, `{}` replaced, and its output is kept."""
    done = ramherd.run("run", "--", "echo", "hello {}!", stdin="a\n\nb c\n")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 jobs done" in done.stderr
    assert ramherd.run("logs", "2-b-c").stdout == "hello b c!\n"


def test_json_is_what_the_contract_says(each_ramherd: Ramherd) -> None:
    """`run --json` has exactly the agreed keys."""
    summary = each_ramherd.json([{"command": "true"}, {"command": "exit 3", "name": "bad"}])
    assert CONTRACT | {"exit_code", "lines"} == set(summary)
    assert set(summary["supervisor"]) == {"rss_peak_bytes", "cpu_s", "keeper_rss_peak_bytes"}
    good, bad = summary["results"]
    assert set(good) == RESULT
    assert (good["state"], good["end"], good["exit_code"], good["runs"]) == ("done", "done", 0, 1)
    assert (bad["state"], bad["end"], bad["exit_code"]) == ("failed", "failed", 3)
    assert bad["reason"] == {"why": "exited", "code": 3}
    assert summary["exit_code"] == 1


def test_a_job_file_in_toml(ramherd: Ramherd, tmp_path: Path) -> None:
    """Order, dependencies, environment, cwd and stdin of a file."""
    (tmp_path / "jobs.toml").write_text(f"""
        [[job]]
        name = "last"
        after = ["first"]
        command = "cat order; echo last >> order"
        cwd = "{tmp_path}"
        [[job]]
        name = "first"
        command = "cat; echo $GREETING; echo first >> order"
        cwd = "{tmp_path}"
        stdin = "from stdin\\n"
        env = {{ GREETING = "moin" }}
    """)
    done = ramherd.run("run", str(tmp_path / "jobs.toml"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert ramherd.run("logs", "first").stdout == "from stdin\nmoin\n"
    assert (tmp_path / "order").read_text() == "first\nlast\n"


def test_priority_comes_before_the_order_of_the_file(ramherd: Ramherd, tmp_path: Path) -> None:
    """With one at a time, the order of starts is the order of the queue."""
    log = tmp_path / "order"
    jobs = [
        {"priority": priority, "command": f"echo {priority}-{number} >> {log}"}
        for number, priority in enumerate([0, 5, 0, 5, -1])
    ]
    assert ramherd.json(jobs, "--max-parallel", "1")["done"] == 5
    assert log.read_text().split() == ["5-1", "5-3", "0-0", "0-2", "-1-4"]


def test_a_failed_dependency_cancels_its_dependants(ramherd: Ramherd) -> None:
    """All the way down, and the reason names the one that failed."""
    summary = ramherd.json(
        [
            {"name": "a", "command": "exit 1"},
            {"name": "b", "after": ["a"], "command": "true"},
            {"name": "c", "after": ["b"], "command": "true"},
        ]
    )
    assert [result["state"] for result in summary["results"]] == [
        "failed",
        "cancelled",
        "cancelled",
    ]
    assert summary["results"][1]["reason"]["dependency"] == "a"
    assert summary["exit_code"] == 1


def test_retries_with_backoff(ramherd: Ramherd, tmp_path: Path) -> None:
    """A job that fails by itself is tried again, with its attempt in the environment."""
    flag = tmp_path / "tried"
    command = f"echo $RAMHERD_ATTEMPT; test -e {flag} || {{ touch {flag}; exit 1; }}"
    summary = ramherd.json([{"name": "again", "retries": 2, "command": command}])
    assert summary["done"] == 1
    assert summary["results"][0]["runs"] == 2
    assert summary["wall_s"] >= 1.0
    assert ramherd.run("logs", "again").stdout == "2\n"


def test_a_timeout_ends_the_whole_pen(each_ramherd: Ramherd) -> None:
    """Children in sessions of their own end with it, stubborn ones after the grace."""
    command = (
        "trap '' TERM; setsid sleep 300 & setsid sh -c \"trap '' TERM; sleep 300\" & sleep 300"
    )
    summary = each_ramherd.json(
        [{"name": "slow", "timeout": "500ms", "command": command}], "--grace", "300ms"
    )
    assert summary["results"][0]["end"] == "timeout"
    assert summary["wall_s"] < 5


def test_a_limit_kill_says_limit_and_peak(each_ramherd: Ramherd) -> None:
    """Over its memory_limit a run is killed, told apart from every other end."""
    summary = each_ramherd.json(
        [
            {"name": "fat", "memory_limit": "64MiB", "command": hold(300, 5)},
            {"name": "thin", "memory_limit": "64MiB", "command": hold(10, 0.1)},
        ]
    )
    fat, thin = summary["results"]
    assert (fat["end"], fat["reason"]["limit_bytes"]) == ("limit_kill", 64 << 20)
    assert fat["reason"]["peak_bytes"] >= 60 << 20
    assert thin["end"] == "done"
    assert (summary["limit_kills"], summary["oom_kills"]) == (1, 0)


def test_a_tool_child_at_the_limit_dies_alone(ramherd: Ramherd) -> None:
    """The kernel kills in the pen; the run itself goes on, and the kill is counted."""
    if ramherd.pen == "polling":
        pytest.skip("only the kernel can kill one process of a pen at its limit")
    argv = " ".join(f"'{word}'" for word in hold(300, 5))
    summary = ramherd.json([{"memory_limit": "64MiB", "command": f"{argv}; echo child $?"}])
    assert summary["results"][0]["end"] == "done"
    assert (summary["limit_kills"], summary["oom_kills"]) == (1, 0)


def test_a_signal_is_the_reason(ramherd: Ramherd) -> None:
    """A run that dies of a signal says which."""
    summary = ramherd.json([{"command": "kill -SEGV $$"}])
    assert summary["results"][0]["reason"] == {"why": "signalled", "signal": signal.SIGSEGV}


def test_leftovers_are_ended_and_counted(each_ramherd: Ramherd) -> None:
    """What a finished run left alive goes: TERM, and KILL for what ignores it."""
    stubborn = "sh -c \"trap '' TERM; echo up >&3; sleep 300\""
    fifo = "mkfifo $TMPDIR/f; exec 3<>$TMPDIR/f; "
    command = fifo + f"setsid sleep 300 & setsid {stubborn} & read x <&3"
    summary = each_ramherd.json([{"command": command}])
    assert summary["done"] == 1
    assert summary["leftovers_ended"] >= 2


def test_the_run_has_its_own_tmpdir_and_names(ramherd: Ramherd) -> None:
    """TMPDIR is there, its own, and gone afterwards, even with read-only trees in it."""
    command = "mkdir $TMPDIR/a; touch $TMPDIR/a/b; chmod 555 $TMPDIR/a; echo $TMPDIR $RAMHERD_JOB"
    summary = ramherd.json([{"name": "tidy", "command": command}])
    tmpdir, _job = ramherd.run("logs", "tidy").stdout.split()
    assert summary["herd"]
    assert not Path(tmpdir).exists()
    assert Path(tmpdir).parent.exists()


def test_residue_in_tmpfs_is_measured(ramherd: Ramherd, tmp_path: Path) -> None:
    """What a run leaves in /dev/shm stays charged, so it is shown."""
    if ramherd.pen == "polling":
        pytest.skip("only cgroups count tmpfs")
    left = f"/dev/shm/ramherd-test-{os.getpid()}"
    try:
        summary = ramherd.json([{"command": f"head -c 20M /dev/zero > {left}"}])
        assert summary["residue_bytes"] >= 20_000_000
    finally:
        os.unlink(left)


def test_no_room_waits_and_says_why(ramherd: Ramherd) -> None:
    """Two that do not fit together run one after the other."""
    jobs = [{"name": name, "memory": "300MiB", "command": "sleep 1.5"} for name in "ab"]
    summary = ramherd.json(jobs, "--budget", "512MiB", "--verbose")
    assert summary["done"] == 2
    assert "wait      b: expects 300 MiB, but running jobs" in summary["lines"]


def test_no_wait_fails_at_once_with_the_numbers(ramherd: Ramherd) -> None:
    """Exit 3 when even the first does not fit."""
    done = ramherd.run("run", "--no-wait", "--memory", "900GiB", "--", "echo", stdin="a\nb\n")
    assert done.returncode == 3
    assert "needs 900 GiB" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_everything(each_ramherd: Ramherd, number: int) -> None:
    """Nothing starts any more, everything is ended, exit 130, nothing is left."""
    # Small ones: five of them fit into any machine at once.
    options = ("--size-scale", "16", "--pen", each_ramherd.pen)
    herd = each_ramherd.start("run", *options, "--", "sleep", stdin="300\n" * 5)
    await_(lambda: len(ours("RAMHERD_RUN")) == 5, "five runs")
    herd.signal(number)
    assert herd.wait() == 130
    assert "5 cancelled" in herd.err.read_text()


def test_a_second_signal_kills_at_once(ramherd: Ramherd) -> None:
    """Who ignores TERM is not waited for after a second Ctrl-C."""
    job = json.dumps({"command": "trap '' TERM; while :; do sleep 1; done"})
    herd = ramherd.start("run", "--grace", "60s", "-", stdin=job)
    await_(lambda: len(ours("RAMHERD_RUN")) >= 2, "a run and its sleep")
    herd.signal(signal.SIGINT)
    await_(lambda: "stop" in herd.err.read_text(), "the first signal is taken")
    herd.signal(signal.SIGINT)
    assert herd.wait() == 130


def test_following_a_log(ramherd: Ramherd) -> None:
    """`logs -f` shows what comes, and ends with the job."""
    job = json.dumps({"name": "talker", "command": "echo one; sleep 1; echo two >&2; echo three"})
    herd = ramherd.start("run", "-", stdin=job)
    await_(lambda: ours("RAMHERD_RUN"), "the run")
    assert ramherd.run("logs", "talker", "-f").stdout == "one\nthree\n"
    assert herd.wait() == 0
    assert ramherd.run("logs", "talker", "--err").stdout == "two\n"


def test_bad_input_is_one_line_and_exit_2(ramherd: Ramherd, tmp_path: Path) -> None:
    """Before anything starts, with the file, the job and the key."""
    (tmp_path / "jobs.toml").write_text('[[job]]\nname = "x"\ncomand = "true"\n')
    done = ramherd.run("run", str(tmp_path / "jobs.toml"))
    assert done.returncode == 2
    assert done.stdout == ""
    first, hint = done.stderr.splitlines()
    assert first.endswith("jobs.toml: job 1 (x) has an unknown key 'comand'")
    assert hint == "  hint: did you mean 'command'?"


def test_an_unknown_job_has_no_log(ramherd: Ramherd) -> None:
    """One line, with the nearest name."""
    ramherd.run("run", "--", "echo", stdin="apple\n")
    done = ramherd.run("logs", "1-aple")
    assert done.returncode == 2
    assert "did you mean '1-apple'?" in done.stderr


def test_a_program_that_vanishes_fails_its_job(ramherd: Ramherd, tmp_path: Path) -> None:
    """What cannot be executed after all is the job's failure, with the system's words."""
    script = tmp_path / "script"
    script.write_text("#!/nonexistent/interpreter\n")
    script.chmod(0o755)
    summary = ramherd.json([{"command": [str(script)]}])
    assert summary["results"][0]["reason"]["why"] == "not_started"
    assert "No such file or directory" in summary["results"][0]["reason"]["what"]
