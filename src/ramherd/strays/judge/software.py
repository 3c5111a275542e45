"""The software that `ramherd ps` recognizes, in one table; [software.NAME] in a settings file adds
entries.

A program is recognized by its binary, the npm package or the Python module that it runs, never by
words somewhere in its command line. The variables that agents give to their tools are those of
claude 2.1.325, codex 0.166, gemini 0.61, opencode 1.18 and qwen 0.15.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ramherd.core.errors import UsageError
from ramherd.core.values import nearest
from ramherd.strays.nouns import Kind, RunningProgram, Software

# TMPDIR/claude-UID/PROJECT/SESSION/tasks/ID.output, where PROJECT is the path of a directory with a
# hyphen for each slash. A directory of the user may be called claude-notes.
CLAUDE_OUTPUT = r"/claude-\d+/-[^/]*/(?:[^/]+/)?tasks/[^/]+\.output$"

AGENTS = (
    Software(
        "claude", Kind.AGENT, ("claude",), ("@anthropic-ai/claude-code",),
        paths=("/claude/versions/",), marks=("CLAUDECODE",), pid_in="CLAUDE_PID",
        session_in="CLAUDE_CODE_SESSION_ID", outputs=(CLAUDE_OUTPUT,), supervisor=("daemon", "run"),
        resume="claude --resume {session}", resume_last="claude --continue",
    ),
    Software(
        "codex", Kind.AGENT, ("codex",), ("@openai/codex",), marks=("CODEX_THREAD_ID",),
        session_in="CODEX_THREAD_ID",
        wrapped=("CODEX_MANAGED_BY_NPM", "CODEX_MANAGED_BY_BUN"),
        resume="codex resume {session}", resume_last="codex resume --last",
    ),
    Software(
        "gemini", Kind.AGENT, (), ("@google/gemini-cli",), marks=("GEMINI_CLI",),
        wrapped=("NODE_CHANNEL_FD+GEMINI_CLI_NO_RELAUNCH",),
        resume="gemini --resume {session}", resume_last="gemini --resume latest",
    ),
    Software(
        "opencode", Kind.AGENT, ("opencode",), ("opencode-ai",), marks=("OPENCODE",),
        pid_in="OPENCODE_PID",
        resume="opencode --session {session}", resume_last="opencode --continue",
    ),
    Software(
        "qwen", Kind.AGENT, (), ("@qwen-code/qwen-code",), marks=("QWEN_CODE",),
        resume="qwen --resume {session}", resume_last="qwen --continue",
    ),
    Software(
        "cursor", Kind.AGENT, ("cursor-agent",), paths=("/cursor-agent/versions/",),
        marks=("CURSOR_AGENT",),
        resume="cursor-agent --resume {session}", resume_last="cursor-agent resume",
    ),
    Software("aider", Kind.AGENT, (), (), ("aider",), resume_last="aider --restore-chat-history"),
    Software("goose", Kind.AGENT, ("goose",), resume_last="goose session --resume"),
    Software("amp", Kind.AGENT, (), ("@sourcegraph/amp",), resume_last="amp threads continue"),
    Software("copilot", Kind.AGENT, (), ("@github/copilot",), resume_last="copilot --continue"),
)  # fmt: skip

SERVERS = (
    Software("playwright-mcp", Kind.MCP, (), ("@playwright/mcp",)),
    Software("chrome-devtools-mcp", Kind.MCP, (), ("chrome-devtools-mcp",)),
    Software("context7", Kind.MCP, (), ("@upstash/context7-mcp",)),
    Software("github-mcp-server", Kind.MCP, ("github-mcp-server",)),
    Software("mcp-remote", Kind.MCP, (), ("mcp-remote",)),
    Software("supergateway", Kind.MCP, (), ("supergateway",)),
    Software("mcp-server-git", Kind.MCP, (), (), ("mcp_server_git",)),
    Software("mcp-server-time", Kind.MCP, (), (), ("mcp_server_time",)),
    Software("mcp-server-fetch", Kind.MCP, (), (), ("mcp_server_fetch",)),
    Software("serena", Kind.MCP, (), (), ("serena",)),
    Software("tsserver", Kind.LANGUAGE, paths=("/typescript/lib/tsserver.js",)),
    Software("tsc", Kind.LINTER, (), ("typescript",)),
    Software("typescript-language-server", Kind.LANGUAGE, (), ("typescript-language-server",)),
    Software("pyright", Kind.LANGUAGE, paths=("pyright/langserver.index.js",)),
    Software("pyright check", Kind.LINTER, (), ("pyright", "basedpyright")),
    Software("pylsp", Kind.LANGUAGE, (), (), ("pylsp",)),
    Software("rust-analyzer", Kind.LANGUAGE, ("rust-analyzer", "rust-analyzer-proc-macro-srv")),
    Software("gopls", Kind.LANGUAGE, ("gopls",)),
    Software("clangd", Kind.LANGUAGE, ("clangd",)),
    Software("jdtls", Kind.LANGUAGE, ("jdtls",)),
    Software("eslint", Kind.LINTER, (), ("eslint", "eslint_d", "vscode-eslint")),
    Software("biome", Kind.LINTER, ("biome",), ("@biomejs/biome",)),
    Software(
        "vscode-langservers", Kind.LANGUAGE, (),
        ("vscode-langservers-extracted", "bash-language-server", "yaml-language-server",
         "@tailwindcss/language-server", "svelte-language-server", "@vue/language-server"),
    ),
    Software("watchman", Kind.WATCHER, ("watchman",)),
    Software("watchers", Kind.WATCHER, ("inotifywait", "fswatch", "watchexec", "entr"),
             ("chokidar-cli", "nodemon", "tsx", "ts-node-dev", "concurrently", "jest", "vitest")),
    Software("esbuild", Kind.WATCHER, ("esbuild",), ("esbuild",)),
    Software(
        "dev servers", Kind.DEV_SERVER, (),
        ("vite", "next", "webpack", "webpack-dev-server", "@angular/cli", "react-scripts", "parcel",
         "astro", "nuxt", "storybook", "wrangler", "http-server", "serve"),
        ("http.server", "uvicorn", "flask", "gunicorn", "hypercorn", "streamlit"),
    ),
    Software(
        "browser", Kind.BROWSER,
        ("chrome", "chromium", "chrome-headless-shell", "headless_shell", "chrome_crashpad_handler",
         "chromedriver", "geckodriver"),
        paths=("/ms-playwright/", "/.cache/puppeteer/"),
    ),
)  # fmt: skip

# Applications that hold sessions; a process belongs to the first one above it.
APPLICATIONS = (
    Software("tmux", Kind.APPLICATION, ("tmux",)),
    Software("screen", Kind.APPLICATION, ("screen",)),
    Software("zellij", Kind.APPLICATION, ("zellij",)),
    Software("ssh", Kind.APPLICATION, ("sshd", "sshd-session", "mosh-server", "dropbear")),
    Software("VS Code", Kind.APPLICATION, ("code", "code-server", "code-insiders", "codium"),
             paths=("/.vscode-server/", "/.cursor-server/")),
    Software("Cursor", Kind.APPLICATION, ("cursor",)),
    Software("JetBrains", Kind.APPLICATION, ("idea", "pycharm", "goland", "webstorm")),
    Software("Zed", Kind.APPLICATION, ("zed", "zed-editor")),
    Software("vim", Kind.APPLICATION, ("vim", "nvim", "vim.basic", "emacs", "hx")),
    Software(
        "terminal", Kind.APPLICATION,
        ("gnome-terminal-server", "ptyxis", "kgx", "konsole", "kitty", "alacritty", "wezterm-gui",
         "ghostty", "foot", "xterm", "xfce4-terminal", "terminator", "tilix", "iTerm2", "Terminal",
         "login", "agetty"),
    ),
    Software("cron", Kind.APPLICATION, ("cron", "crond", "anacron", "atd")),
    Software(
        "ramherd", Kind.RAMHERD, (), (), ("ramherd",),
        ("/ramherd/keeper/__main__.py", "/ramherd/api/__main__.py"),
    ),
)  # fmt: skip

# Processes other than process 1 that inherit the children of dead ones.
REAPERS = (
    Software("systemd", Kind.REAPER, ("systemd",)),
    Software("init", Kind.REAPER, ("init", "launchd", "openrc-init", "runit", "runsvdir")),
    Software("container init", Kind.REAPER, (
        "tini", "tini-static", "dumb-init", "docker-init", "catatonit", "s6-svscan", "conmon",
        "containerd-shim", "containerd-shim-runc-v2", "podman-init")),
)  # fmt: skip

TABLE = (*AGENTS, *SERVERS, *APPLICATIONS, *REAPERS)
# Keys of a [software.NAME] table in a settings file.
LISTS = ("programs", "packages", "modules", "paths", "marks")
TEXTS = ("kind", "resume", "resume_last")
NOT_TO_ADD = (Kind.REAPER, Kind.WRAPPER, Kind.TOOL, Kind.OTHER, Kind.RAMHERD)
KINDS_TO_ADD = tuple(kind for kind in Kind if kind not in NOT_TO_ADD)


class SoftwareTable:
    """Lookups in the table. The user's entries come before the built-in ones."""

    def __init__(self, added: Iterable[Software] = ()) -> None:
        self.table = (*added, *TABLE)
        self._programs = index(self.table, "programs")
        self._packages = index(self.table, "packages")
        self._modules = index(self.table, "modules")
        self._paths = [(part, one) for one in self.table for part in one.paths]

    @property
    def agents(self) -> tuple[Software, ...]:
        return tuple(one for one in self.table if one.kind is Kind.AGENT)

    def recognise(self, program: RunningProgram) -> Software | None:
        found = self._of_path(program.path) or self._packages.get(program.package)
        if found is not None:
            return found
        if program.module:
            return self._of_module(program.module) or as_mcp(program)
        name = name_of(program.path)
        if not program.is_script:
            return self._programs.get(name)
        # Any file may be called `next`: a script is matched by its package, or as a Python script.
        if not program.package and "/bin/" in program.path:
            return self._of_module(name.replace("-", "_")) or as_mcp(program)
        return as_mcp(program)

    def _of_module(self, module: str) -> Software | None:
        return self._modules.get(module) or self._modules.get(module.partition(".")[0])

    def _of_path(self, path: str) -> Software | None:
        return next((one for part, one in self._paths if part in path), None)


def name_of(path: str) -> str:
    return path.rpartition("/")[2]


def index(table: Iterable[Software], field: str) -> Mapping[str, Software]:
    found: dict[str, Software] = {}
    for one in table:
        for name in getattr(one, field):
            found.setdefault(name, one)
    return found


def as_mcp(program: RunningProgram) -> Software | None:
    """A server that is not listed, recognized by its package's metadata."""
    if not program.is_mcp:
        return None
    name = program.package or program.module or name_of(program.path)
    return Software(name, Kind.MCP)


def parse_software(tables: Mapping[str, tuple[Any, str]]) -> list[Software]:
    return [parse_table(name, table, path) for name, (table, path) in tables.items()]


def parse_table(name: str, table: Any, path: str) -> Software:
    where = f"{path}, software {name!r}"
    if not isinstance(table, dict):
        raise UsageError(f"{where} is not a table", hint=f"write [software.{name}]")
    for key, value in table.items():
        check_entry(key, value, where)
    kind = table.get("kind")
    if kind not in KINDS_TO_ADD:
        kinds = ", ".join(KINDS_TO_ADD)
        raise UsageError(f"{where}: {kind!r} is not a kind", hint=f"one of: {kinds}")
    if not any(table.get(key) for key in ("programs", "packages", "modules", "paths")):
        raise UsageError(
            f"{where} has neither programs nor packages", hint="add programs or packages"
        )
    given: dict[str, Any] = {key: tuple(table[key]) for key in LISTS if key in table}
    given |= {key: table[key] for key in ("resume", "resume_last") if key in table}
    return Software(name, Kind(kind), **given)


def check_entry(key: str, value: Any, where: str) -> None:
    if key in LISTS:
        fits = isinstance(value, list) and all(isinstance(word, str) and word for word in value)
        if not fits:
            raise UsageError(f"{where}: {key!r} is not a list of words")
    elif key not in TEXTS:
        raise UsageError(f"{where} has an unknown key {key!r}", hint=nearest(key, (*LISTS, *TEXTS)))
    elif not isinstance(value, str):
        raise UsageError(f"{where}: {key!r} is not a string")
