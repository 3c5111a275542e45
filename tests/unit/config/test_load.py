"""Settings: which place wins, what is said of a wrong one, and the table they are made from."""

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramherd.cli.config import render_config
from ramherd.cli.run import make_rules
from ramherd.config.keys import ALIASES, BY_NAME, KEYS
from ramherd.config.load import Config, add_flags, from_environment, load_config
from ramherd.core.errors import UsageError
from ramherd.core.policies import GrantPolicy
from ramherd.core.units import GIB
from ramherd.keeper.output_log import HEAD_BYTES, RING_BYTES
from ramherd.supervisor.run_herd import Rules

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory without settings, with a user who has none."""
    for name in list(os.environ):
        if name.startswith("RAMHERD_") and not name.startswith("RAMHERD_TEST"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "home/ramherd").mkdir(parents=True)
    (tmp_path / "project/deep/down").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project/deep/down")
    return tmp_path / "project"


def load(*flags: str, **defaults: Any) -> Config:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return load_config(parser.parse_args(flags), defaults=defaults)


def write_user_file(project: Path, text: str) -> Path:
    path = project.parent / "home/ramherd/config.toml"
    path.write_text(text)
    return path


def test_every_key_has_a_default() -> None:
    """With no file, variable or flag."""
    config = load()
    assert {name: setting.source for name, setting in config.settings.items()} == dict.fromkeys(
        BY_NAME, "default"
    )
    assert (config["memory"], config["budget"], config["grace"]) == (None, None, 10.0)


def test_the_stronger_place_wins(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb's default, the user's file, the project's, a variable, a flag."""
    assert load(budget=2 * GIB)["budget"] == 2 * GIB
    user = write_user_file(project, 'budget = "1GiB"\ntimeout = "5m"\n')
    assert load(budget=2 * GIB).settings["budget"].source == f"{user}, line 1"
    (project / "ramherd.toml").write_text('\nbudget = "3GiB"\n')
    config = load()
    assert (config["budget"], config["timeout"]) == (3 * GIB, 300.0)
    assert config.settings["budget"].source == f"{project}/ramherd.toml, line 2"
    monkeypatch.setenv("RAMHERD_BUDGET", "4GiB")
    assert load().settings["budget"].source == "RAMHERD_BUDGET"
    config = load("--budget", "5GiB")
    assert (config["budget"], config.settings["budget"].source) == (5 * GIB, "--budget")


def test_the_nearest_project_file_is_taken(project: Path) -> None:
    """Upwards, and the first one only."""
    (project / "ramherd.toml").write_text("retries = 1\nmax_parallel = 1")
    (project / "deep/ramherd.toml").write_text("retries = 2")
    config = load()
    assert (config["retries"], config["max_parallel"]) == (2, None)
    assert config.files == (f"{project}/deep/ramherd.toml",)


def test_none_takes_back_what_a_file_said(project: Path) -> None:
    """Only where there is such a value; a switch has its opposite flag."""
    (project / "ramherd.toml").write_text('memory_limit = "1GiB"\nno_wait = true')
    assert load("--memory-limit", "none", "--wait")["memory_limit"] is None
    assert load("--wait")["no_wait"] is False
    with pytest.raises(UsageError, match="--grace: 'none' is not a duration"):
        load("--grace", "none")


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_each_key_works_in_each_place(
    key: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File, variable and flag take the same text."""
    texts = {
        "SIZE": "3MiB",
        "TIME": "90s",
        "N": "7",
        "SHARE": "0.7",
        "KIND": "polling",
        "NAME": "big",
        "COMMAND": "notify-send done",
        "AGENT": "codex",
        "CHOICE": "fail",
        "PATH": "/opt/claude",
        "USD": "2.5",
        "WORDS": "--effort high",
        "NAMES": "PATH, HOME, ANTHROPIC_*",
        "": "true",
    }
    text = texts[key.kind.metavar]
    write_user_file(project, "[profile.big]")
    (project / "ramherd.toml").write_text(f'{key.name} = "{text}"')
    value = load()[key.name]
    (project / "ramherd.toml").unlink()
    monkeypatch.setenv(key.variable, text)
    assert load()[key.name] == value
    monkeypatch.delenv(key.variable)
    assert load(*([key.flag, text] if key.kind.metavar else [key.flag]))[key.name] == value


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_work_in_each_place(
    alias: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names people bring."""
    name = ALIASES[alias]
    values = {"memory_limit": ("8GiB", "9GiB"), "mcp.share": ("true", "false")}
    first, second = values.get(name, ("8", "9"))
    (project / "ramherd.toml").write_text(f'{alias} = "{first}"')
    assert load()[name] == BY_NAME[name].parse(first)
    (project / "ramherd.toml").unlink()
    assert load(f"--{alias}", second)[name] == BY_NAME[name].parse(second)
    assert load().settings[name].source == "default"


@pytest.mark.parametrize("alias", ["max-memory", "maxMemory"])
def test_max_memory_without_a_unit_is_in_mib(
    alias: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the tools that the name comes from: in a file, as a variable and as a flag."""
    for written in ("4096", '"4096"', '"4GiB"'):
        (project / "ramherd.toml").write_text(f"{alias} = {written}")
        assert load()["memory_limit"] == 4 * GIB
    (project / "ramherd.toml").unlink()
    assert load(f"--{alias}", "4096")["memory_limit"] == 4 * GIB
    assert load(f"--{alias}", "4GB")["memory_limit"] == 4 * 10**9
    monkeypatch.setenv("RAMHERD_MAX_MEMORY", "2048")
    assert load()["memory_limit"] == 2 * GIB


SIZES = ["budget", "memory", "memory_limit", "recycle_at", "log_head", "log_total", "warn_at"]


@pytest.mark.parametrize("name", SIZES)
def test_a_size_needs_a_unit_in_each_place(
    name: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number in a file, a text, a variable and a flag are all refused, with the size that was
    meant.
    """
    key = BY_NAME[name]
    file = project / "ramherd.toml"
    for written in ("512", '"512"'):
        file.write_text(f"{name} = {written}")
        with pytest.raises(UsageError, match=f"key '{name}': size '512' has no unit") as caught:
            load()
        assert caught.value.hint == "512 bytes? say 512MiB"
    file.unlink()
    with pytest.raises(UsageError, match=f"{key.flag}: size '12' has no unit") as caught:
        load(key.flag, "12")
    assert caught.value.hint == "12 bytes? say 12GiB"
    monkeypatch.setenv(key.variable, "4294967296")
    with pytest.raises(UsageError, match=f"{key.variable}: size '4294967296' has") as caught:
        load()
    assert caught.value.hint == "4294967296 bytes? say 4GiB"


@pytest.mark.parametrize("name", ["budget", "memory", "memory_limit", "recycle_at", "warn_at"])
def test_memory_below_1_mib_is_refused(name: str) -> None:
    """No program runs in 512 KiB, and each of these is about a program."""
    with pytest.raises(UsageError, match="size '512KiB' is below 1 MiB"):
        load(BY_NAME[name].flag, "512KiB")


@pytest.mark.parametrize("text", ["\u0663GiB", "\uff15\uff11MiB", "1_000MiB"])
def test_a_size_has_the_digits_0_to_9(text: str) -> None:
    """What looks like a digit in another script is a mistake of the keyboard."""
    with pytest.raises(UsageError, match="is not a size"):
        load("--budget", text)


@pytest.mark.parametrize("text", ["\u0663", "1_0", "\uff13"])
def test_a_number_has_the_digits_0_to_9(text: str) -> None:
    """Python's own conversion would take them."""
    with pytest.raises(UsageError, match="is not a whole number"):
        load("--max-parallel", text)


def test_aliases_as_variables() -> None:
    """In capitals with underscores; the key's own name is the stronger one."""
    found, warnings = from_environment(
        {"RAMHERD_MAX_PARALLEL": "2", "RAMHERD_MAX_CONCURRENT": "3", "RAMHERD_MAX_MEMORY": "1GiB"}
    )
    assert {name: setting.value for name, setting in found.items()} == {
        "max_parallel": 2,
        "memory_limit": GIB,
    }
    assert warnings == []
    found, _warnings = from_environment({"RAMHERD_MAX_PARALLEL_SUBAGENTS": "3"})
    assert found["max_parallel"].source == "RAMHERD_MAX_PARALLEL_SUBAGENTS"
    found, _warnings = from_environment({"RAMHERD_MCP_SERVER_SHARING": "true"})
    assert found["mcp.share"].value is True


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ('theme = "dark"\nbudget = "1GiB"', ["line 1: unknown key 'theme' is ignored"]),
        ('budget = "1GiB"\n[tool.black]\nline-length = 88', ["unknown key 'tool' is ignored"]),
        ('budget = "1GiB"\ntelemetry = false\nautoUpdate = 1', [
            "line 2: unknown key 'telemetry' is ignored",
            "line 3: unknown key 'autoUpdate' is ignored",
        ]),
        ('budget = "1GiB"\n[profile.big]\nsandbox = "none"', [
            "profile 'big': unknown key 'sandbox' is ignored",
        ]),
    ],
)  # fmt: skip
def test_a_setting_of_another_tool_is_left_out(
    text: str, left_out: list[str], project: Path
) -> None:
    """A line for each, and what stands beside it counts."""
    (project / "ramherd.toml").write_text(text)
    found = load()
    assert found["budget"] == GIB
    assert [
        line.removeprefix(f"{project}/ramherd.toml").lstrip(",: ") for line in found.warnings
    ] == left_out


@pytest.mark.parametrize(
    ("written", "meant"),
    [("buget", "budget"), ("maxParallel", "max_parallel"), ("max-parallel", "max_parallel"),
     ("memoryLimit", "memory_limit"), ("time_out", "timeout"), ("parallel", "max_parallel"),
     ("max_memory", "max-memory")],
)  # fmt: skip
def test_a_misspelt_key_is_an_error(written: str, meant: str, project: Path) -> None:
    """The herd would start without what was set."""
    (project / "ramherd.toml").write_text(f"{written} = 1")
    with pytest.raises(UsageError, match=f"line 1 has an unknown key '{written}'") as caught:
        load()
    assert caught.value.hint == f"did you mean '{meant}'?"


def test_a_variable_that_is_no_key_is_a_warning() -> None:
    """With the nearest name. No warning for variables of a run or of tests, nor for a name that is
    like no setting's: it may be the user's own.
    """
    own = ("RUN", "JOB", "HERD", "ATTEMPT", "RESUMED", "RUNTIME_DIR", "TEST", "TESTING")
    environ = {f"RAMHERD_{name}": "x" for name in own} | {"RAMHERD_BUGDET": "1", "PATH": "x"}
    environ["RAMHERD_XYZZY"] = "1"
    found, warnings = from_environment(environ)
    assert found == {}
    assert warnings == ["unknown variable RAMHERD_BUGDET: did you mean 'RAMHERD_BUDGET'?"]


def test_an_empty_variable_is_not_set() -> None:
    """`RAMHERD_BUDGET= ramherd run` is how shells take a variable back."""
    assert from_environment({"RAMHERD_BUDGET": "", "RAMHERD_BUGDET": ""}) == ({}, [])


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("buget = 1", "line 1 has an unknown key 'buget'", "did you mean 'budget'?"),
        ("max-parallel = 1", "unknown key 'max-parallel'", "did you mean 'max_parallel'?"),
        ("\n\nbudget = 'x'", "line 3, key 'budget': 'x' is not a size", "512MiB or 2GiB"),
        ("retries = -1", "line 1, key 'retries': -1 is below zero", ""),
        ("retries = 1.5", "key 'retries': 1.5 is not a whole number", ""),
        ("retries = true", "key 'retries': True is not a whole number", ""),
        ("max_parallel = 0", "key 'max_parallel': 0 is below 1", ""),
        ("max_parallel = 'many'", "key 'max_parallel': 'many' is not a whole number", ""),
        ("no_wait = 'perhaps'", "'perhaps' is neither true nor false", ""),
        ("pen = 'barn'", "'barn' is not a kind of pen", "one of: auto, "),
        ("log_ring = '1KiB'", "key 'log_ring': 1 KiB is below 64 KiB", ""),
        ("memory = ['1GiB']", "key 'memory': ['1GiB'] is not a size", "512MiB"),
        ("agent = 'claud'", "'claud' is not a known agent", "did you mean 'claude'?"),
        ("max_cost_usd = 0", "key 'max_cost_usd': 0 is not an amount above zero", ""),
        ("[mcp]\nshare = 'no?'", "key 'mcp.share': 'no?' is neither true nor false", ""),
        ("[mcp]\nshrae = true", "unknown key 'mcp.shrae'", "did you mean 'mcp.share'?"),
        ("mcp.servers = 1", "'mcp.servers' is not a table", "write [mcp.servers.NAME]"),
        ("[mcp.servers.x]\nurl = 'y'", "a project may not add MCP servers: x", "your own config"),
        ("max_parallel = 1\nmax-concurrent = 1", "'max-concurrent' is another name of", ""),
        ("[profile.big]\nmcp = 1", "key 'mcp': 1 is neither a list of names nor a string", ""),
        ("[profile.big]\nbudget = 1", "profile 'big' has an unknown key 'budget'", ""),
        ("[profile.big]\nmemroy = 1", "has an unknown key 'memroy'", "did you mean 'memory'?"),
        ("[profile.big]\nmemory = 0", "is not above zero", ""),
        ("[profile]\nbig = 1", "profile 'big' is not a table", "write [profile.big]"),
        ("budget = ", "is not TOML: Invalid value", ""),
        ("profile = 'big'", "line 1: no profile is named 'big'", "add [profile.big]"),
    ],
)
def test_what_is_wrong_in_a_file(project: Path, text: str, message: str, hint: str) -> None:
    """One line: the file, the line where it is known, the key, and what is right."""
    (project / "ramherd.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        load()
    assert str(caught.value).startswith(f"{project}/ramherd.toml")
    assert message in str(caught.value)
    assert hint in caught.value.hint


def test_a_file_that_is_not_text(project: Path) -> None:
    """Bytes of any kind are an error with their place."""
    (project / "ramherd.toml").write_bytes(b"budget = '\xff'")
    with pytest.raises(UsageError, match="is not UTF-8: byte 0xff at offset 10"):
        load()


def test_a_profile_lies_between_files_and_environment(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By flag or variable; unknown ones are named with the nearest."""
    (project / "ramherd.toml").write_text(
        'memory = "1GiB"\nretries = 1\n[profile.big]\nmemory = "4GiB"\nmax-memory = "8GiB"\n'
    )
    assert load()["memory"] == GIB
    config = load("--profile", "big")
    assert (config["memory"], config["memory_limit"], config["retries"]) == (4 * GIB, 8 * GIB, 1)
    assert config.settings["memory"].source == f"{project}/ramherd.toml, profile 'big'"
    monkeypatch.setenv("RAMHERD_PROFILE", "big")
    assert load("--memory", "2GiB")["memory"] == 2 * GIB
    with pytest.raises(UsageError, match="--profile: no profile is named 'bug'") as caught:
        load("--profile", "bug")
    assert caught.value.hint == "did you mean 'big'?"


def test_a_profile_of_the_user_can_be_used_by_a_project(project: Path) -> None:
    """`profile = NAME` and [profile.NAME] cannot stand in one file: TOML."""
    write_user_file(project, '[profile.big]\nmemory = "4GiB"\n[profile.small]\nmemory = "1GiB"')
    (project / "ramherd.toml").write_text('profile = "big"')
    lines = list(render_config(load()))
    source = f"{project.parent}/home/ramherd/config.toml, profile 'big'"
    assert f"memory               4 GiB     {source}" in lines
    assert "[profile.big] (in use)" in lines
    assert "[profile.small]" in lines


def test_wrong_settings_may_be_reported_and_left_out(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its place; the right ones beside them count."""
    lines = ('budget = "much"', "buget = 1", "max_parallel = 3", 'profile = "none there"')
    (project / "ramherd.toml").write_text("\n".join(lines))
    monkeypatch.setenv("RAMHERD_GRACE", "soon")
    wrong: list[str] = []
    found = load_config(cwd=str(project), report=lambda error: wrong.append(str(error)))
    assert (found["max_parallel"], found["budget"], found["grace"]) == (3, None, 10.0)
    assert [text.removeprefix(f"{project}/").split(":")[0] for text in wrong] == [
        "ramherd.toml, line 1, key 'budget'",
        "ramherd.toml, line 2 has an unknown key 'buget'",
        "RAMHERD_GRACE",
        "ramherd.toml, line 4",
    ]
    (project / "ramherd.toml").write_text("budget = ")
    wrong.clear()
    load_config(cwd=str(project), report=lambda error: wrong.append(str(error)))
    assert "is not TOML" in wrong[0]


def test_personal_keys_are_wrong_in_a_projects_file(project: Path) -> None:
    """The user's own file may set them, and what it says is not lost to the project's."""
    write_user_file(project, 'on_subagent_stop = "notify"')
    (project / "ramherd.toml").write_text('on_subagent_stop = "./evil"')
    wrong: list[str] = []
    found = load_config(
        cwd=str(project), personal=("on_subagent_stop",),
        report=lambda error: wrong.append(str(error)),
    )  # fmt: skip
    assert found["on_subagent_stop"] == "notify"
    assert "a project may not set" in wrong[0]


def test_a_profile_names_its_mcp_servers(project: Path) -> None:
    """A list, or names separated by commas; an empty list is a choice as well."""
    text = "[profile.a]\nmcp = ['time', 'fetch']\n[profile.b]\nmcp = []\n[mcp]\nshare = true\n"
    (project / "ramherd.toml").write_text(text)

    assert load("--profile", "a")["mcp"] == ("time", "fetch")
    assert load("--profile", "b")["mcp"] == ()
    assert load("--profile", "a", "--mcp", "memory,time")["mcp"] == ("memory", "time")
    assert load()["mcp"] is None
    assert load()["mcp.share"]


def test_the_users_file_adds_mcp_servers(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with its file, for errors of the gateway."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(project))
    (project / "ramherd").mkdir()
    file = project / "ramherd/config.toml"
    file.write_text("[mcp]\nidle = '1m'\n[mcp.servers.time]\ncommand = ['x']\n")

    config = load()
    assert config.servers == {"time": ({"command": ["x"]}, str(file))}
    assert config["mcp.idle"] == 60


def test_a_directory_that_is_gone(project: Path) -> None:
    """It has no project's file, and most verbs need no directory."""
    (project / "ramherd.toml").write_text('grace = "1s"')
    assert load()["grace"] == 1.0
    (project / "deep/down").rmdir()

    assert load().files == ()


def test_loading_takes_no_time(project: Path) -> None:
    """Less than 5 ms of CPU time with both files there."""
    write_user_file(project, 'budget = "1GiB"\n[profile.a]\nmemory = "1GiB"')
    (project / "ramherd.toml").write_text('grace = "1s"')
    parser = argparse.ArgumentParser()
    add_flags(parser)
    options = parser.parse_args([])
    times = []
    for _turn in range(5):
        start = time.process_time()
        load_config(options)
        times.append(time.process_time() - start)
    assert min(times) < 0.005


def test_the_gate_of_the_cpus_can_be_taken_away(project: Path) -> None:
    """Its default is a number; where there is none, nothing is ever above it."""
    assert load()["max_cpu_pressure"] == GrantPolicy().cpu_pressure_marks[0]
    (project / "ramherd.toml").write_text("max_cpu_pressure = 0.5")
    assert load()["max_cpu_pressure"] == 0.5
    assert load("--max-cpu-pressure", "none")["max_cpu_pressure"] is None
    assert make_rules(load("--max-cpu-pressure", "none")).grants.cpu_pressure_marks > (1.0, 1.0)


@pytest.mark.parametrize(
    ("flag", "text", "message"),
    [
        ("--max-cpu-pressure", "1.1", "'1.1' is above 1"),
        ("--max-cpu-pressure", "0", "'0' is not a number above zero"),
        ("--max-cpu-pressure", "much", "'much' is not a number above zero"),
        ("--time-scale", "nan", "'nan' is not a number above zero"),
        ("--time-scale", "inf", "'inf' is not a number above zero"),
        ("--size-scale", "-2", "'-2' is not a number above zero"),
        ("--size-scale", "none", "'none' is not a number above zero"),
        ("--ramp", "0", "0 is below 1"),
        ("--ramp", "2.5", "'2.5' is not a whole number"),
        ("--recycle-at", "lots", "'lots' is not a size"),
    ],
)
def test_a_number_that_makes_no_sense(flag: str, text: str, message: str) -> None:
    """Named with its flag, before anything starts."""
    with pytest.raises(UsageError, match=f"{flag}: {message}"):
        load(f"{flag}={text}")


def test_arguments_are_a_list_or_a_line(project: Path) -> None:
    """A line is split as a shell would."""
    (project / "ramherd.toml").write_text('agent_args = ["--say", "it is"]')
    assert load()["agent_args"] == ("--say", "it is")
    assert load("--agent-args=--say 'it is'")["agent_args"] == ("--say", "it is")
    assert BY_NAME["agent_args"].show(("--say", "it is")) == "--say 'it is'"
    assert load("--agent-args", "none")["agent_args"] is None
    with pytest.raises(UsageError, match=r"--agent-args: .* has no closing quotation"):
        load("--agent-args=--say 'it")
    for value in ("7", "[7]"):
        (project / "ramherd.toml").write_text(f"agent_args = {value}")
        with pytest.raises(UsageError, match=r"key 'agent_args'.* is n"):
            load()


@pytest.mark.parametrize("value", ["true", '["1"]', "1979-05-27"])
def test_a_factor_in_a_file_is_a_number(project: Path, value: str) -> None:
    """TOML has more kinds of values than a flag."""
    (project / "ramherd.toml").write_text(f"time_scale = {value}")
    with pytest.raises(UsageError, match="is not a number above zero"):
        load()


def test_what_was_set_reaches_the_rules() -> None:
    """Each layer compares with its own part of it."""
    flags = "--max-parallel=3 --ramp=2 --recycle-at=2GiB --max-cpu-pressure=0.5 --pen=polling"
    rules = make_rules(load(*flags.split(), "--time-scale=10", "--size-scale=4", "--budget=1GiB"))

    assert (rules.ramp, rules.pen, rules.policy.budget_cap_bytes) == (2, "polling", GIB)
    assert (rules.time_scale, rules.size_scale) == (10.0, 4.0)
    assert rules.recycling.recycle_at_bytes == 2 * GIB
    grants = GrantPolicy(max_parallel=3, cpu_pressure_marks=(0.5, 0.35))
    assert rules.grants == grants.scaled(10.0, 4.0)


def test_without_settings_the_rules_are_the_defaults() -> None:
    """The table has no numbers of its own."""
    rules = make_rules(load())

    assert replace(rules, grants=GrantPolicy()) == Rules()
    on, off = rules.grants.cpu_pressure_marks
    assert (on, off < on) == (GrantPolicy().cpu_pressure_marks[0], True)
    assert rules.grants._replace(cpu_pressure_marks=(0.9, 0.75)) == GrantPolicy()


def test_the_keepers_own_numbers_are_the_defaults() -> None:
    """The keeper cannot import the policy: it would cost it memory."""
    assert (BY_NAME["log_head"].default, BY_NAME["log_ring"].default) == (HEAD_BYTES, RING_BYTES)
