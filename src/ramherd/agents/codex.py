"""Codex: a native binary (Rust) behind a Node script, which is skipped."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ramherd.agents import Launch, LaunchRequest
from ramherd.agents.base import Cli, Turns
from ramherd.agents.find_program import AgentProgram, Source, packages_beside
from ramherd.agents.json_lines import count, table, tables, text, word
from ramherd.agents.progress import (
    TOO_LONG,
    CliWarning,
    Denied,
    Fact,
    Failure,
    ModelText,
    Overload,
    Result,
    Retry,
    SessionOpened,
    Spent,
    ToolEnded,
    clip,
    failures,
    tool_ended,
    trouble_in,
)
from ramherd.agents.tool_text import ARGUMENT_LENGTH, content_text, main_argument
from ramherd.core.agent_task import ApiRefusal
from ramherd.core.errors import UsageError
from ramherd.core.units import MIB, shown

SOURCE = Source(
    agent="codex",
    names=("codex",),
    install="npm install -g @openai/codex",
    package="@openai/codex",
    oldest="0.50.0",
)
# Older packages have the binary one folder up or in a folder of its own.
PLACES = ("vendor/*/bin/codex", "vendor/*/codex/codex")
# Values of `--allow`: a sandbox, or the network in the sandbox that may write.
WRITE, NETWORK, FULL = ALLOWED = ("workspace-write", "network", "danger-full-access")
AGAIN, FIRST_AGAIN = "Reconnecting", "Reconnecting... 1/"
NO_TOOLS = ("agent_message", "reasoning", "error", "todo_list")
# Printed by a command, and logged by codex, when the sandbox refuses.
READ_ONLY = "Read-only file system"
REFUSED = re.compile(r"tools::router: error=.*(rejected by user approval|approval policy is Never)")
# codex runs the command `echo it` as `/bin/bash -lc 'echo it'`.
SHELL = re.compile(r"(?:\S*/\w+ -lc (?:'(?P<quoted>[^']*)'$)?)?(?P<plain>.*)", re.DOTALL)


class Codex(Cli):
    source = SOURCE
    name = "codex"
    runtime = "native"
    # 12 tools of 100 kB output each: 48 MiB are enough; its history is in memory.
    floor_bytes = 128 * MIB
    account_env = ("CODEX_HOME", "OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL")
    ours = ("--json", "-m", "--model", "-C", "--cd", "--worktree", "--ephemeral")

    def find(self, path: str, program: str = "") -> AgentProgram:
        found = super().find(path, program)
        native = find_native(found.file) if found.node else ""
        return replace(found, file=native, node="") if native else found

    def start(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return launch(program, request, ())

    def resume(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return launch(program, request, ("resume", request.session))

    def attach(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        node = (program.node,) if program.node else ()
        argv = [
            *node,
            program.file,
            "resume",
            *(["--model", request.model] if request.model else []),
        ]
        argv += ["--dangerously-bypass-approvals-and-sandbox"] if request.skip_permissions else []
        return Launch((*argv, *own_args(request), request.session))

    def check_allow(self, rules: Sequence[str]) -> None:
        for rule in rules:
            if rule not in ALLOWED:
                raise UsageError(
                    f"codex has no rules for single tools: --allow {shown(rule)} has no effect",
                    hint=f"allow one of its sandboxes: {', '.join(ALLOWED)}",
                )

    def reader(self) -> "CodexReader":
        return CodexReader()

    def read_errors(self, printed: str) -> Iterator[Fact]:
        """A patch or command that the sandbox refuses is reported only on stderr."""
        for line in printed.splitlines():
            if REFUSED.search(line):
                yield Denied("apply_patch" if "patch rejected" in line else "shell", "", WRITE)


def find_native(script: str) -> str:
    for package in packages_beside(script, "codex-*"):
        for place in PLACES:
            for file in sorted(package.glob(place)):
                if os.access(file, os.X_OK):
                    return str(file)
    return ""


def launch(program: AgentProgram, request: LaunchRequest, session: tuple[str, ...]) -> Launch:
    """`resume` accepts few options itself: options precede it."""
    node = (program.node,) if program.node else ()
    # Outside a git repository it would refuse to start; its sandbox limits writes anyway.
    anywhere = "--skip-git-repo-check"
    argv = [*node, program.file, "exec", "--json", *({anywhere} - set(request.args))]
    argv += ["--model", request.model] if request.model else []
    argv += ["--dangerously-bypass-approvals-and-sandbox"] if request.skip_permissions else []
    return Launch((*argv, *own_args(request), *session, "-"), {}, request.prompt)


def own_args(request: LaunchRequest) -> tuple[str, ...]:
    """codex refuses a second `--sandbox`: the allowed sandbox replaces the user's own."""
    if request.skip_permissions or not request.allow:
        return request.args
    network = ("-c", "sandbox_workspace_write.network_access=true")
    return (
        *without_sandbox(request.args),
        *("--sandbox", FULL if FULL in request.allow else WRITE),
        *(network if NETWORK in request.allow else ()),
    )


def without_sandbox(args: Sequence[str]) -> Iterator[str]:
    rest = iter(args)
    for arg in rest:
        if arg in ("-s", "--sandbox"):
            next(rest, "")
        elif not arg.startswith(("--sandbox=", "-s")):
            yield arg


class CodexReader:
    def __init__(self) -> None:
        self.turns = Turns()
        self.reply = ""

    def read(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        match text(event, "type"):
            case "thread.started" if thread := word(event, "thread_id"):
                yield SessionOpened(thread)
            case "item.started":
                yield from self.start_item(table(event, "item"))
            case "item.completed":
                yield from self.end_item(table(event, "item"))
            case "turn.completed":
                yield spent_of(event)
                yield Result(self.reply)
            case "turn.failed":
                yield from failures(text(event, "error", "message"))
            case "error":
                yield trouble_of(text(event, "message"))

    def start_item(self, item: Mapping[str, Any]) -> Iterator[Fact]:
        kind = word(item, "type")
        if kind in NO_TOOLS:
            yield from self.turns.start()
        else:
            yield from self.turns.start_tool(word(item, "id"), kind, argument_of(item))

    def end_item(self, item: Mapping[str, Any]) -> Iterator[Fact]:
        match text(item, "type"):
            case "agent_message":
                self.reply = clip(text(item, "text"))
                yield from self.turns.start()
                yield ModelText(text(item, "text"))
            case "reasoning":
                yield from self.turns.start()
            case "error":
                yield CliWarning(clip(text(item, "message")))
            case "todo_list":
                pass
            case kind:
                if is_read_only(item):
                    yield Denied("shell", " ".join(argument_of(item).split()), WRITE)
                if (tool := word(item, "id")) not in self.turns.open:
                    # Changes of files are reported only at their end.
                    yield from self.turns.start_tool(tool, kind, argument_of(item))
                yield from self.turns.end_tool(ended_of(item))

    def read_long(self, found: Mapping[str, str]) -> Iterator[Fact]:
        if found.get("type") == "item.completed":
            item = found.get("id", "")
            if item in self.turns.open:
                yield from self.turns.end_tool(ToolEnded(item, TOO_LONG, 1))
            else:
                self.reply = TOO_LONG
                yield from self.turns.start()
                yield ModelText(TOO_LONG)


def argument_of(item: Mapping[str, Any]) -> str:
    """The command without its shell, or the changed paths, or the argument of the call."""
    if paths := ", ".join(word(change, "path") for change in tables(item, "changes")):
        return paths[:ARGUMENT_LENGTH]
    if tool := word(item, "tool"):
        return f"{word(item, 'server')}.{tool} {main_argument(table(item, 'arguments'))}".rstrip()
    command = SHELL.fullmatch(main_argument(item))
    return command["quoted"] or command["plain"] if command else text(item, "query")


def ended_of(item: Mapping[str, Any]) -> ToolEnded:
    output = text(item, "aggregated_output") or content_text(table(item, "result"))
    code = item.get("exit_code")
    is_error = text(item, "status") in ("failed", "declined") or code not in (None, 0)
    if is_error and not output:
        output = text(item, "error", "message") or text(item, "status")
    return tool_ended(word(item, "id"), output, is_error=is_error)


def is_read_only(item: Mapping[str, Any]) -> bool:
    """Whether the sandbox made a command fail; only the output of the command shows it."""
    is_failed = text(item, "type") == "command_execution" and text(item, "status") == "failed"
    return is_failed and READ_ONLY in text(item, "aggregated_output")


def spent_of(event: Mapping[str, Any]) -> Spent:
    """The tokens of the whole thread, including earlier runs of a resumed thread."""
    usage = table(event, "usage")
    return Spent(count(usage, "input_tokens"), count(usage, "output_tokens"), whole=True)


def trouble_of(message: str) -> Overload | Retry | Failure | ApiRefusal:
    """codex tries again five times, also after a 401: the error of the first try may be gone by the
    last.
    """
    clipped = clip(message)
    if not message.startswith(AGAIN):
        return Failure(clipped)
    trouble = trouble_in(clipped)
    if trouble is None or (isinstance(trouble, ApiRefusal) and message.startswith(FIRST_AGAIN)):
        return Retry(clipped)
    return trouble


AGENT = Codex()
