"""`ramherd logs` of real runs: transcripts of agents, several jobs at once, following."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from integration.conftest import Ramherd, await_

DATA = Path(__file__).parents[2] / "data/agents"
# Fails once in the middle of its work, and then does all of it.
TALK = """\
#!/bin/sh
cat > /dev/null
echo 'a warning' >&2
if mkdir FOLDER/tried 2>/dev/null; then cat DATA/claude-cut.jsonl; exit 1; fi
cat DATA/claude-shell.jsonl
"""


@pytest.fixture
def talker(tmp_path: Path) -> str:
    program = tmp_path / "talker"
    program.write_text(TALK.replace("FOLDER", str(tmp_path)).replace("DATA", str(DATA)))
    program.chmod(0o755)
    return str(program)


def test_an_agent_has_a_transcript_over_its_runs(
    ramherd: Ramherd, talker: str, tmp_path: Path
) -> None:
    """Its prompt, what it did in each run, and why the first one ended; --raw has the events."""
    agent = {"name": "fix it", "agent": "claude", "prompt": "fix\nthe bug", "cwd": str(tmp_path)}
    ramherd.json([{**agent, "retries": 1}], "--agent-program", talker)
    shown = ramherd.run("logs", "fix it")
    lines = shown.stdout.splitlines()
    boundary = lines.index("stderr: a warning") + 1

    assert (shown.returncode, shown.stderr) == (0, "")
    assert lines[:4] == ["> fix", "> the bug", "* Bash: echo first-part", "    first-part"]
    assert lines[boundary].startswith("--- run 1 ended: ")
    assert lines[boundary].endswith("; run 2 goes on")
    assert lines[boundary + 1 :] == [
        "* Bash: echo from-the-shell", "    from-the-shell", "", "The shell said it.", "",
        "stderr: a warning",
    ]  # fmt: skip
    assert ramherd.run("logs", "fix it", "-n", "3").stdout.splitlines() == lines[-3:]
    raw = ramherd.run("logs", "fix it", "--raw")
    assert raw.stdout == (DATA / "claude-shell.jsonl").read_text()
    assert raw.stderr == "a warning\n"


def test_a_job_that_printed_nothing(ramherd: Ramherd) -> None:
    """The summary of a run names `ramherd logs`: it says that there is no output. It is not said of
    one stream alone, nor where lines were skipped.
    """
    ramherd.json([{"name": "mute", "command": "true"}, {"name": "loud", "command": "echo x"}])
    mute = ramherd.run("logs", "mute")

    assert (mute.returncode, mute.stdout) == (0, "")
    assert mute.stderr == "ramherd: mute has printed nothing\n"
    assert ramherd.run("logs", "mute", "-f").stderr == mute.stderr
    for words in (("mute", "--err"), ("loud", "-n", "0"), ("mute", "loud")):
        assert ramherd.run("logs", *words).stderr == ""


def test_a_herd_at_once(ramherd: Ramherd) -> None:
    """Each line with its job; a job whose output was removed is named, and the others follow."""
    herd = ramherd.json([{"name": n, "command": f"echo {n}; echo {n}! >&2"} for n in "abc"])["herd"]
    (first,) = (json.loads(line)["id"] for line in jobs_of(ramherd, herd, "a"))
    whole = ramherd.run("logs")
    assert whole.stdout == "a\ta\nb\tb\nc\tc\n"
    assert whole.stderr == "a\ta!\nb\tb!\nc\tc!\n"
    assert ramherd.run("logs", herd, "--out").stdout == whole.stdout
    assert ramherd.run("logs", "c", first, "--err").stdout == "c\tc!\na\ta!\n"
    ramherd.json([{"name": "new", "command": "true"}])
    assert ramherd.run("logs", "--herd", herd, "b").stdout == "b\n"
    assert "no job 'b' in herd" in ramherd.run("logs", "b", "--herd", newest(ramherd)).stderr
    shutil.rmtree(ramherd.state / "ramherd/runs")
    (ramherd.state / "ramherd/runs").mkdir()
    assert ramherd.run("logs", "a", "b").returncode == 0


def jobs_of(ramherd: Ramherd, herd: str, name: str) -> list[str]:
    lines = ramherd.run("jobs", "--herd", herd, "--json").stdout.splitlines()
    return [line for line in lines if json.loads(line)["name"] == name]


def newest(ramherd: Ramherd) -> str:
    lines = ramherd.run("jobs", "--all", "--json").stdout.splitlines()
    return str(json.loads(lines[-1])["herd"])


def test_output_that_was_removed(ramherd: Ramherd) -> None:
    """Of one of several jobs: it is named, and the others are printed."""
    ramherd.json([{"name": "old", "command": "head -c 100000 /dev/zero"}])
    ramherd.json([{"name": "new", "command": "echo kept"}])
    ramherd.run("prune", "--keep", "50KB")
    both = ramherd.run("logs", "old", "new")

    assert (both.returncode, both.stdout) == (0, "new\tkept\n")
    assert "ramherd: the output of old was removed" in both.stderr


def test_jobs_are_followed_line_by_line(ramherd: Ramherd, tmp_path: Path) -> None:
    """Also one that has not started yet; until the last one has ended."""
    gate = tmp_path / "gate"
    slow = f"printf half; while ! test -e {gate}; do sleep 0.05; done; echo ' a line'"
    jobs = [{"name": "slow", "command": slow}, {"name": "late", "command": "echo late"}]
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    herd = ramherd.start("run", "-", "--max-parallel", "1", stdin=text)
    await_(lambda: '"slow"' in ramherd.run("jobs", "--json").stdout, "the herd")
    with (tmp_path / "followed").open("w+") as followed:
        command = [sys.executable, "-m", "ramherd", "logs", "-f"]
        follower = subprocess.Popen(command, env=ramherd.env, stdout=followed)
        gate.touch()
        assert follower.wait(20) == 0
        followed.seek(0)
        assert followed.read() == "slow\thalf a line\nlate\tlate\n"
    assert herd.wait() == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("-n", "-1"), "-n takes 0 or more lines, not -1"),
        (("nobody",), "no job 'nobody'"),
        (("--herd", "none"), "no herd 'none'"),
    ],
)
def test_what_makes_no_sense(ramherd: Ramherd, words: tuple[str, ...], problem: str) -> None:
    """What is wrong, and exit 2."""
    ramherd.json([{"name": "a", "command": "true"}])
    done = ramherd.run("logs", *words)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
