"""What would be started for each agent, and how its program is found."""

import json
import os
import re
import signal
import stat
from pathlib import Path

import pytest

from ramherd.agents import Agent, LaunchRequest, find_agent
from ramherd.agents.base import new_uuid
from ramherd.agents.find_program import AgentProgram
from ramherd.agents.heap import check_limit, choose_heap_bytes, parse_node_heap
from ramherd.agents.user_args import check_args
from ramherd.core.agent_names import AGENTS
from ramherd.core.errors import UsageError
from ramherd.core.model import ProcId
from ramherd.core.procid import Process
from ramherd.core.units import GIB, MIB
from ramherd.measure.own_memory import own_pids

SKIPS = re.compile("danger|yolo|force|auto$|skip")
# Options that both may give.
SHARED = {"--verbose", "--skip-git-repo-check"}
ASK = LaunchRequest("do it", session="S", model="haiku", args=("--own", "x"))
NODE = AgentProgram("/lib/cli.js", "1.2.3", "/bin/node")
NATIVE = AgentProgram("/bin/agent")
REAL = [name for name in AGENTS if name != "command"]


@pytest.mark.parametrize("name", AGENTS)
def test_each_agent_fulfils_the_protocol(name: str) -> None:
    """All that a supervisor asks for is there."""
    agent: Agent = find_agent(name)

    assert agent.name == name
    assert agent.runtime in ("node", "bun", "native", "unknown")
    assert agent.stop_signal == signal.SIGTERM
    assert agent.needs_result is (name != "command")


def test_an_unknown_agent() -> None:
    """Named, with those that there are."""
    with pytest.raises(UsageError, match="there is no agent 'clod'") as caught:
        find_agent("clod")

    assert "claude" in caught.value.hint


@pytest.mark.parametrize("name", REAL)
def test_permissions_stay_the_users(name: str) -> None:
    """No flag that skips them unless the config says so."""
    agent = find_agent(name)
    asked = LaunchRequest("do it", session="S", skip_permissions=True)

    assert not any(SKIPS.search(word) for word in {*agent.start(NATIVE, ASK).argv} - SHARED)
    assert any(SKIPS.search(word) for word in {*agent.start(NATIVE, asked).argv} - SHARED)


@pytest.mark.parametrize("given", [(), ("--skip-git-repo-check",)])
def test_codex_works_outside_of_a_repository(given: tuple[str, ...]) -> None:
    """At a start and at a resume, and once: codex refuses the option a second time."""
    agent, ask = find_agent("codex"), LaunchRequest("do it", session="S", args=given)

    for launch in (agent.start(NATIVE, ask), agent.resume(NATIVE, ask)):
        assert launch.argv.count("--skip-git-repo-check") == 1


@pytest.mark.parametrize("name", REAL)
def test_the_users_own_words_are_passed_on(name: str) -> None:
    """Model and further arguments, at a start and at a resume; the session at a resume."""
    agent = find_agent(name)
    start, resume = agent.start(NATIVE, ASK).argv, agent.resume(NATIVE, ASK).argv

    for argv in (start, resume):
        assert argv[0] == NATIVE.file
        assert argv[argv.index("--model") + 1] == "haiku"
        assert argv[argv.index("--own") + 1] == "x"
    assert "S" in resume
    assert ("S" in start) is bool(agent.new_session())


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("claude", "claude --resume S"),
        ("codex", "codex resume S"),
        ("gemini", "gemini --resume S"),
        ("opencode", "opencode --session S"),
        ("qwen", "qwen --resume S"),
        ("cursor", "cursor-agent --resume S"),
    ],
)
def test_a_session_is_continued_by_hand(name: str, typed: str) -> None:
    """The words that a user types; `ramherd attach` adds the settings of the job."""
    agent = find_agent(name)
    argv = agent.attach(NODE, ASK).argv

    assert agent.attach_argv("S") == tuple(typed.split())
    assert agent.attach_argv("S", "/my/own")[0] == "/my/own"
    assert NODE.file in argv
    assert {"S", "--model", "haiku", "--own"} <= set(argv)
    assert not {"-p", "--print", "--output-format", "--json", "--format", "exec", "run"} & set(argv)


@pytest.mark.parametrize(
    ("name", "rule", "given"),
    [
        ("claude", "Bash(npm test)", "--allowedTools=Bash(npm test)"),
        ("claude", "mcp__files__read", "--allowedTools=mcp__files__read"),
        ("gemini", "Bash(npm test)", "--allowed-tools=run_shell_command(npm test)"),
        ("qwen", "run_shell_command(npm test)", "--allowed-tools=run_shell_command(npm test)"),
        ("qwen", "write_file", "--allowed-tools=write_file"),
    ],
)
def test_a_tool_that_is_allowed_for_one_run(name: str, rule: str, given: str) -> None:
    """By the name that the CLI has for it, at a start and at a resume."""
    agent = find_agent(name)
    agent.check_allow([rule])
    ask = LaunchRequest("do it", session="S", allow=(rule,))

    assert given in agent.start(NATIVE, ask).argv
    assert given in agent.resume(NATIVE, ask).argv


def test_opencode_is_told_in_its_environment() -> None:
    """What is not named stays a question, which a run that nobody watches answers with no."""
    rules = ("Bash(npm test)", "bash(make)", "edit")
    env = find_agent("opencode").start(NATIVE, LaunchRequest("do it", allow=rules)).env

    assert json.loads(env["OPENCODE_PERMISSION"]) == {
        "bash": {"*": "ask", "npm test": "allow", "make": "allow"},
        "edit": "allow",
    }
    assert "OPENCODE_PERMISSION" not in find_agent("opencode").start(NATIVE, ASK).env


def test_codex_is_given_another_sandbox() -> None:
    """One that the user's own arguments name is replaced: codex takes the option once."""
    codex = find_agent("codex")
    own = ("-s", "read-only", "--sandbox=read-only", "--own")
    codex.check_allow(["workspace-write", "network", "danger-full-access"])
    write = LaunchRequest("do it", session="S", args=own, allow=("network",))
    full = LaunchRequest("do it", args=own, allow=("danger-full-access", "workspace-write"))

    assert codex.resume(NATIVE, write).argv[4:-3] == (
        *("--own", "--sandbox", "workspace-write"),
        *("-c", "sandbox_workspace_write.network_access=true"),
    )
    assert codex.start(NATIVE, full).argv[4:-1] == ("--own", "--sandbox", "danger-full-access")
    with pytest.raises(UsageError, match="no rules for single tools") as error:
        codex.check_allow(["Bash(npm test)"])
    assert "workspace-write" in error.value.hint


@pytest.mark.parametrize("rule", ["", "-x", "Bash(", "Bash()", "Bash(npm test) more", "a\nb"])
def test_a_rule_that_is_none(rule: str) -> None:
    """Refused before anything is started with it."""
    with pytest.raises(UsageError, match="is not a rule of claude"):
        find_agent("claude").check_allow([rule])


@pytest.mark.parametrize("name", ["gemini", "qwen"])
def test_a_comma_would_end_a_rule(name: str) -> None:
    """claude sees the brackets around it."""
    find_agent("claude").check_allow(["Bash(make a, b)"])
    with pytest.raises(UsageError, match=f"{name} takes no rule with a comma"):
        find_agent(name).check_allow(["Bash(make a, b)"])


@pytest.mark.parametrize("name", ["cursor", "command"])
def test_an_agent_that_takes_no_rules(name: str) -> None:
    """The error says so, in one line; a command has no session either."""
    agent = find_agent(name)
    agent.check_allow([])
    with pytest.raises(UsageError):
        agent.check_allow(["Bash(npm test)"])


@pytest.mark.parametrize("name", REAL)
def test_what_ramherd_sets_is_not_the_users_to_add(name: str) -> None:
    """Each option that an adapter gives, however it is written; all others are passed on."""
    agent = find_agent(name)
    ask = LaunchRequest("do it", session="S", model="haiku", max_cost_usd=1.0)
    given = {*agent.start(NATIVE, ask).argv, *agent.resume(NATIVE, ask).argv}
    for option in {word for word in given if len(word) > 1 and word[0] == "-"} - SHARED:
        for word in (option, f"{option}=x", f"{option}x" if option[1] != "-" else option):
            with pytest.raises(UsageError, match=f"{option} of {name} is set by ramherd"):
                check_args(agent, ["--add-dir", "x", word])
    check_args(agent, [])
    check_args(agent, ["--add-dir", "/x y", "-d", "--add-dir=--model"])


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--model", "opus"], "agent_args: --model of claude is set by ramherd (use model)"),
        (["--outputFormat=text"], "--output-format of claude is set by ramherd (leave it out)"),
        (["--effort", "high", "--", "x"], "-- of claude is set by ramherd"),
        (["high"], "agent_args: 'high' is not an option of claude"),
    ],
)
def test_an_argument_that_is_refused(args: list[str], told: str) -> None:
    """In one line, with the setting that is meant for it where there is one."""
    with pytest.raises(UsageError) as error:
        check_args(find_agent("claude"), args)
    assert told in f"{error.value} ({error.value.hint})"


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode", "qwen", "command"])
def test_prompts_go_in_by_stdin(name: str) -> None:
    """No limit of length, no dash that is an option, nothing in `ps`."""
    launch = find_agent(name).start(NATIVE, LaunchRequest("-x" * 200_000, session="S", args=("a",)))

    assert launch.stdin == "-x" * 200_000
    assert not any("-x-x" in word for word in launch.argv)


def test_cursor_takes_its_prompt_as_an_argument() -> None:
    """Which has a longest, and may not look like an option."""
    cursor = find_agent("cursor")

    assert cursor.start(NATIVE, LaunchRequest("--help me")).argv[-1] == " --help me"
    with pytest.raises(UsageError, match="has 200000 bytes, and cursor accepts at most 131070"):
        cursor.start(NATIVE, LaunchRequest("x" * 200_000))


def test_an_older_claude_is_a_node_program() -> None:
    """It is told its heap as such, and nothing that only Bun understands."""
    launch = find_agent("claude").start(
        NODE, LaunchRequest("do it", session="S", heap_bytes=512 * MIB)
    )

    assert launch.argv[:3] == (NODE.node, "--max-old-space-size=512", NODE.file)
    assert not any("BUN" in name for name in launch.env)


@pytest.mark.parametrize("name", ["gemini", "qwen"])
def test_node_is_started_by_us_and_told_its_heap(name: str) -> None:
    """Without the relaunch; the setting reaches no tool of the agent, as NODE_OPTIONS would."""
    launch = find_agent(name).start(NODE, LaunchRequest("do it", session="S", heap_bytes=512 * MIB))

    assert launch.argv[0] == NODE.node
    assert "--max-old-space-size=512" in launch.argv[: launch.argv.index(NODE.file)]
    assert any("NO_RELAUNCH" in name for name in launch.env)
    assert "NODE_OPTIONS" not in launch.env


@pytest.mark.parametrize("name", ["claude", "opencode"])
def test_bun_is_told_of_less_memory(name: str) -> None:
    """It takes no limit, but collects earlier."""
    agent = find_agent(name)
    launch = agent.start(NATIVE, LaunchRequest("do it", session="S", heap_bytes=512 * MIB))

    assert launch.env["BUN_JSC_forceRAMSize"] == str(512 * MIB)
    assert "BUN_JSC_forceRAMSize" not in agent.start(NATIVE, ASK).env


def test_codex_has_no_setting_for_memory() -> None:
    """None is made up."""
    launch = find_agent("codex").start(NATIVE, LaunchRequest("do it", heap_bytes=512 * MIB))

    assert launch.env == {}


def test_the_heap_fits_below_the_limit() -> None:
    """With room for what is not heap; without a limit by the grant."""
    assert choose_heap_bytes(300 * MIB, GIB) == 896 * MIB
    assert choose_heap_bytes(300 * MIB, None) == GIB
    assert choose_heap_bytes(GIB, None) == 2 * GIB


def test_the_heap_that_a_user_set_for_node_is_the_first() -> None:
    """Whatever was granted, and whichever limit there is."""
    assert choose_heap_bytes(300 * MIB, GIB, 512 * MIB) == 512 * MIB
    assert choose_heap_bytes(2 * GIB, None, 512 * MIB) == 512 * MIB


@pytest.mark.parametrize(
    ("options", "mib"),
    [
        ("", None),
        ("--max-old-space-size=512", 512),
        ("--trace-warnings --max_old_space_size=2048 --no-warnings", 2048),
        ("--max-old-space-size=512 --max-old-space-size=640", 640),
        ("--max-old-space-size", None),
        ("--max-old-space-size=", None),
        ("--max-old-space-size=0", None),
        ("--max-old-space-size=4k", None),
        ("--max-semi-space-size=16", None),
    ],
)
def test_node_options_name_a_heap(options: str, mib: int | None) -> None:
    """In MiB; the last one counts, as it does for node."""
    assert parse_node_heap(options) == (None if mib is None else mib * MIB)


def test_a_limit_below_the_floor_is_refused() -> None:
    """With the number that would do."""
    claude = find_agent("claude")
    with pytest.raises(UsageError, match="200 MiB is below the 381 MiB that claude needs") as error:
        check_limit(claude, 200 * MIB)

    assert error.value.hint == 'write memory_limit = "381MiB" or more, or ramherd run --force'
    check_limit(claude, 381 * MIB)


def make_program(file: Path, text: str = "#!/bin/sh\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def make_package(folder: Path, name: str, version: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"name": name, "version": version}))


@pytest.mark.parametrize("name", REAL)
def test_an_agent_that_is_not_installed(name: str, tmp_path: Path) -> None:
    """The error has the command that installs it."""
    with pytest.raises(UsageError, match="is not found") as caught:
        find_agent(name).find(str(tmp_path))

    assert "install" in caught.value.hint


def test_a_program_named_by_a_setting(tmp_path: Path) -> None:
    """It comes before PATH, and is named when it is not there."""
    file = make_program(tmp_path / "my-claude")

    assert find_agent("claude").find("/nowhere", str(file)).file == str(file)
    with pytest.raises(UsageError, match="'/no/claude' is not found"):
        find_agent("claude").find("/nowhere", "/no/claude")


def test_the_version_is_read_from_the_package(tmp_path: Path) -> None:
    """No program is started for it; one that is too old is refused."""
    package = tmp_path / "node_modules/@anthropic-ai/claude-code"
    file = make_program(package / "bin/claude.exe")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/claude").symlink_to(file)
    make_package(package, "@anthropic-ai/claude-code", "2.1.3")
    claude = find_agent("claude")

    assert claude.find(str(tmp_path / "bin")) == AgentProgram(str(file), "2.1.3")
    make_package(package, "@anthropic-ai/claude-code", "1.9.9")
    with pytest.raises(UsageError, match=r"claude 1\.9\.9 is too old: 2\.0\.0 is the oldest"):
        claude.find(str(tmp_path / "bin"))


def test_the_version_may_stand_in_the_path(tmp_path: Path) -> None:
    """As the native installer of claude has it; where nothing says it, it is not known."""
    file = make_program(tmp_path / "share/claude/versions/2.1.7")
    (tmp_path / "claude").symlink_to(file)

    assert find_agent("claude").find(str(tmp_path)).version == "2.1.7"
    assert find_agent("cursor").find("", str(make_program(tmp_path / "cursor"))).version == ""


def test_a_script_needs_node(tmp_path: Path) -> None:
    """By its name or its first line; the error says so."""
    script = make_program(tmp_path / "gemini", "#!/usr/bin/env node\n")
    with pytest.raises(UsageError, match="needs node, which is not found"):
        find_agent("gemini").find(str(tmp_path))
    node = make_program(tmp_path / "node")

    assert find_agent("gemini").find(str(tmp_path)) == AgentProgram(str(script), "", str(node))


@pytest.mark.parametrize("place", ["../codex-linux-x64/vendor/musl/bin", "vendor/musl/codex"])
def test_codex_is_started_without_its_wrapper(tmp_path: Path, place: str) -> None:
    """The binary in the package of the platform, or in the package itself."""
    package = tmp_path / "node_modules/@openai/codex"
    make_package(package, "@openai/codex", "0.166.0")
    make_program(tmp_path / "node")
    (tmp_path / "codex").symlink_to(make_program(package / "bin/codex.js"))
    native = make_program(package / place / "codex")
    found = find_agent("codex").find(str(tmp_path))

    assert found == AgentProgram(os.path.realpath(native), "0.166.0")
    native.unlink()
    assert find_agent("codex").find(str(tmp_path)).node == str(tmp_path / "node")


def test_qwen_is_started_without_its_entry(tmp_path: Path) -> None:
    """cli-entry.js would start cli.js as a process of its own."""
    make_program(tmp_path / "node")
    (tmp_path / "qwen").symlink_to(make_program(tmp_path / "lib/cli-entry.js"))
    proper = make_program(tmp_path / "lib/cli.js")

    assert find_agent("qwen").find(str(tmp_path)).file == str(proper)


def proc(pid: int, ppid: int, sid: int) -> Process:
    return Process(ProcId(pid, 1), "x", "S", ppid, pid, sid)


def test_tools_are_not_the_agents_own() -> None:
    """A shell in a session of its own and all below it are the tool's; servers are the agent's."""
    agent, server, shell, child = (
        proc(10, 1, 5),
        proc(11, 10, 5),
        proc(12, 10, 12),
        proc(13, 12, 12),
    )
    back = proc(14, 12, 5)  # below a tool, whatever its session says

    assert own_pids([child, back, shell, server, agent, proc(20, 1, 5)], 10) == {10, 11}
    assert own_pids([agent], 99) == frozenset()


def test_session_ids_are_uuids() -> None:
    """Random ones of version 4, as the CLIs check."""
    ids = {new_uuid() for _each in range(100)}

    assert len(ids) == 100
    assert all(
        re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one)
        for one in ids
    )
