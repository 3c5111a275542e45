"""Settings from files and variables, as a user meets them."""

import json
from pathlib import Path

import pytest

from integration.conftest import Ramherd, pens


def write_config(ramherd: Ramherd, text: str) -> Path:
    path = Path(ramherd.env["XDG_CONFIG_HOME"]) / "ramherd/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_config_shows_each_value_and_its_place(ramherd: Ramherd) -> None:
    """Default, file with line, variable, flag; bytes and seconds for programs."""
    path = write_config(ramherd, 'budget = "1GiB"\ngrace = "1s"\n[profile.big]\nmemory = "2GiB"')
    ramherd.env |= {"RAMHERD_GRACE": "2s", "RAMHERD_RETRYS": "2"}
    done = ramherd.run("config", "--max-parallel", "3")
    assert done.returncode == 0, done.stderr
    settings, _blank, profile = done.stdout.partition("\n\n")
    shown = dict(line.split(maxsplit=1) for line in settings.splitlines())
    assert profile.startswith("[profile.big]\nmemory               2 GiB")
    assert shown["budget"].split("  ")[0] == "1 GiB"
    assert shown["budget"].endswith(f"{path}, line 1")
    assert shown["grace"].split() == ["2.0s", "RAMHERD_GRACE"]
    assert shown["max_parallel"].split() == ["3", "--max-parallel"]
    assert done.stderr == (
        "ramherd: unknown variable RAMHERD_RETRYS: did you mean 'RAMHERD_RETRIES'?\n"
    )
    assert ramherd.run("status").stderr == done.stderr
    told = json.loads(ramherd.run("config", "--json").stdout)
    assert told["settings"]["budget"] == {"value": 1 << 30, "source": f"{path}, line 1"}
    assert told["profiles"]["big"]["memory"]["value"] == 2 << 30


def test_a_herd_obeys_file_variable_flag_and_profile(ramherd: Ramherd) -> None:
    """The budget of the file, the limit of a profile, one at a time by a variable."""
    write_config(ramherd, 'budget = "600MiB"\n[profile.tight]\ntimeout = "300ms"')
    ramherd.env["RAMHERD_MEMORY"] = "400MiB"
    summary = ramherd.json(
        [
            {"name": "quick", "command": "sleep 0.4"},
            {"name": "slow", "command": "sleep 30", "profile": "tight"},
        ],
        "--grace", "1s",
    )  # fmt: skip
    quick, slow = summary["results"]
    assert summary["budget_bytes"] == 600 << 20
    assert (quick["end"], slow["end"]) == ("done", "timeout")
    assert "slow: expects 400 MiB, 600 MiB free" in summary["lines"]


def test_a_profile_that_is_not_there(ramherd: Ramherd) -> None:
    """Named by a job: the job, the key, and the nearest name."""
    write_config(ramherd, "[profile.tight]\nretries = 1")
    job = json.dumps({"command": "true", "profile": "tigth"})
    done = ramherd.run("run", "-", stdin=job)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "ramherd: standard input: job 1 (job-1), key 'profile': no profile is named 'tigth'",
        "  hint: did you mean 'tight'?",
    ]


def test_a_wrong_file_is_one_line_and_exit_2(ramherd: Ramherd) -> None:
    """Before anything starts."""
    path = write_config(ramherd, "max_paralel = 3")
    done = ramherd.run("run", "--", "echo", stdin="a\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"ramherd: {path}, line 1 has an unknown key 'max_paralel'",
        "  hint: did you mean 'max_parallel'?",
    ]


def test_a_setting_of_another_tool_stops_no_verb(ramherd: Ramherd) -> None:
    """One line about it, and the herd runs."""
    path = write_config(ramherd, 'theme = "dark"')
    done = ramherd.run("run", "--", "echo", stdin="a\n")
    assert (done.returncode, done.stdout) == (0, "a\n")
    assert done.stderr.count(f"ramherd: {path}, line 1: unknown key 'theme' is ignored\n") == 1
    assert ramherd.run("config").returncode == 0


def test_a_list_of_processes_is_shown_without_a_wrong_setting(ramherd: Ramherd) -> None:
    """`ps` starts nothing; `reap`, which ends processes, refuses the file."""
    path = write_config(ramherd, "warn_node = 0\nbuget = 1")
    shown = ramherd.run("ps")
    assert shown.returncode == 0
    assert shown.stderr.splitlines() == [
        f"ramherd: {path}, line 1, key 'warn_node': 0 is below 1: ignored (write 1 or more)",
        f"ramherd: {path}, line 2 has an unknown key 'buget': ignored (did you mean 'budget'?)",
    ]
    assert ramherd.run("reap").returncode == 2


def test_head_and_ring_of_a_log(ramherd: Ramherd) -> None:
    """Smaller than usual, down to the keeper; `logs` puts it in order."""
    ramherd.json(
        [{"name": "much", "command": "yes 0123456 | head -c 1M; echo end"}],
        "--log-head", "1KiB", "--log-ring", "64KiB",
    )  # fmt: skip
    shown = ramherd.run("logs", "much").stdout
    assert shown.startswith("0123456\n" * 128 + "\n[ramherd: ")
    assert shown.endswith("0123456\nend\n")
    (out,) = (ramherd.state / "ramherd/runs").glob("*/out")
    assert out.stat().st_size == 65 << 10


def test_a_pen_holds_so_many_processes(ramherd: Ramherd) -> None:
    """A fork above the limit fails in the run, and only there."""
    if pens() == ["polling"]:
        pytest.skip("polling holds no one to a number of processes")
    command = "for i in 1 2 3 4 5 6 7 8 9; do sleep 5 & done; echo through"
    summary = ramherd.json([{"name": "many", "command": command}], "--pids-limit", "6")
    assert summary["results"][0]["state"] == "failed"
    assert "ork" in ramherd.run("logs", "many", "--err").stdout
    assert ramherd.json([{"name": "few", "command": command}], "--pids-limit", "60")["done"] == 1
