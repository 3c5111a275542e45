"""An agent CLI with a home of its own that knows no API but ours, and nothing of its user."""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ramherd.agents import Agent, Launch, LaunchRequest, find_agent
from ramherd.agents.find_program import AgentProgram
from ramherd.agents.json_lines import Events
from ramherd.agents.progress import Fact, Progress, next_progress
from ramherd.agents.resume_prompt import GO_ON

INSTALLED = Path(__file__).parents[2] / ".tools/agents/node_modules/.bin"
AGENTS = ("claude", "codex", "gemini", "opencode", "qwen")


def claude(_home: Path, url: str) -> dict[str, str]:
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "IS_SANDBOX")
    # IS_SANDBOX: as root it would not skip permissions without.
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", **dict.fromkeys(quiet, "1")}


def codex(home: Path, url: str) -> dict[str, str]:
    (home / ".codex").mkdir()
    lines = (
        'model = "gpt-5"', 'model_provider = "ours"', "check_for_update_on_startup = false",
        "[analytics]", "enabled = false", "[model_providers.ours]", 'name = "ours"',
        f'base_url = "{url}/v1"', 'env_key = "OUR_KEY"', 'wire_api = "responses"',
    )  # fmt: skip
    (home / ".codex/config.toml").write_text("\n".join(lines))
    return {"CODEX_HOME": str(home / ".codex"), "OUR_KEY": "none"}


def gemini(home: Path, url: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text(json.dumps(settings))
    trusted = {"GEMINI_API_KEY": "none", "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return {"GOOGLE_GEMINI_BASE_URL": url, **trusted}


def opencode(home: Path, url: str) -> dict[str, str]:
    model = {"cost": {"input": 1, "output": 2}, "limit": {"context": 100_000, "output": 1000}}
    options = {"baseURL": f"{url}/v1", "apiKey": "none"}
    ours = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": model}}
    settings = {"model": "ours/m", "small_model": "ours/m", "provider": {"ours": ours}}
    (home / ".config/opencode").mkdir(parents=True)
    (home / ".config/opencode/opencode.json").write_text(json.dumps(settings))
    return dict.fromkeys(("OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD"), "1")


def qwen(_home: Path, url: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "m"}


SETTINGS: dict[str, Callable[[Path, str], dict[str, str]]] = {
    "claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode, "qwen": qwen,
}  # fmt: skip
# What a user of theirs would have in the settings, too.
ARGS = {"qwen": ("--auth-type", "openai")}


# Each CLI's own tool that writes a file: its name, and the arguments for the path and the text.
WRITERS = {
    "claude": ("Write", "file_path", "content"), "gemini": ("write_file", "file_path", "content"),
    "opencode": ("write", "filePath", "content"), "qwen": ("write_file", "file_path", "content"),
}  # fmt: skip
SHELLS = {
    "claude": ("Bash", "command"), "codex": ("exec_command", "cmd"),
    "gemini": ("run_shell_command", "command"), "opencode": ("bash", "command"),
    "qwen": ("run_shell_command", "command"),
}  # fmt: skip


def write_call(name: str, path: Path) -> dict[str, Any]:
    """For a script: a new file by the CLI's own tool; codex patches in its shell."""
    if name == "codex":
        patch = f"*** Begin Patch\n*** Add File: {path.name}\n+hello\n*** End Patch\n"
        return shell_call(name, f"apply_patch <<'EOF'\n{patch}EOF\n")
    tool, where, what = WRITERS[name]
    return {"call": [{"name": tool, "args": {where: str(path), what: "hello\n"}}]}


def shell_call(name: str, command: str) -> dict[str, Any]:
    """The same as a `shell` step, also for a model that was not offered the tool."""
    tool, what = SHELLS[name]
    more: dict[str, dict[str, Any]] = {
        "qwen": {"is_background": False},
        "opencode": {"description": "a command"},
    }
    return {"call": [{"name": tool, "args": {what: command, **more.get(name, {})}}]}


@dataclass
class Home:
    """One CLI, found by its adapter, with its own HOME and an empty directory to work in."""

    agent: Agent
    program: AgentProgram
    env: dict[str, str]
    cwd: Path

    # Whether it may use its tools without being asked.
    is_trusted: bool = True

    def ask(self, prompt: str, session: str = "") -> LaunchRequest:
        return LaunchRequest(
            prompt, session, args=ARGS.get(self.agent.name, ()), skip_permissions=self.is_trusted,
            heap_bytes=512 << 20,
        )  # fmt: skip

    def start(self, prompt: str) -> "Running":
        launch = self.agent.start(self.program, self.ask(prompt, self.agent.new_session()))
        return self.run(launch, Progress())

    def distrust(self) -> None:
        """Its tools need permission; opencode's do only if its settings say so."""
        self.is_trusted = False
        if self.agent.name == "opencode":
            file = Path(self.env["HOME"]) / ".config/opencode/opencode.json"
            ask = {"permission": {"bash": "ask", "edit": "deny"}}
            file.write_text(json.dumps(json.loads(file.read_text()) | ask))

    def resume(self, progress: Progress) -> "Running":
        launch = self.agent.resume(self.program, self.ask(GO_ON, progress.session))
        return self.run(launch, progress.resumed())

    def run(self, launch: Launch, progress: Progress) -> "Running":
        process = subprocess.Popen(
            launch.argv, env={**launch.env, **self.env}, cwd=self.cwd, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin
        process.stdin.write(launch.stdin.encode())
        process.stdin.close()
        process.stdin = None
        return Running(self.agent, process, Events(self.agent.reader()), progress)


@dataclass
class Running:
    agent: Agent
    process: "subprocess.Popen[bytes]"
    events: Events
    progress: Progress
    facts: list[Fact] = field(default_factory=list)
    out: bytes = b""
    err: bytes = b""

    def finish(self) -> Progress:
        """What it came to, once it has ended."""
        self.out, self.err = self.process.communicate(timeout=60)
        self.facts = self.events.feed(self.out) + self.events.close()
        self.facts += self.agent.read_errors(self.err.decode())
        self.progress = next_progress(self.progress, self.facts)
        return self.progress


def make_home(name: str, folder: Path, url: str) -> Home:
    agent = find_agent(name)
    home, cwd = folder / f"home-{name}", folder / f"work-{name}"
    home.mkdir()
    cwd.mkdir()
    path = f"{INSTALLED}:{os.environ['PATH']}"
    kept = {key: value for key, value in os.environ.items() if key.startswith("RAMHERD_TEST")}
    env = {**kept, "PATH": path, "HOME": str(home), "TMPDIR": str(cwd), "LANG": "C.UTF-8"}
    env |= SETTINGS[name](home, url)
    return Home(agent, agent.find(path), env, cwd)
