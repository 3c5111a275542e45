"""Claude Code: a native binary (Bun). Session ids are ours; one process takes many prompts."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ramherd.agents import Ask, Launch
from ramherd.agents.anthropic_events import MessagesReader
from ramherd.agents.api_errors import is_overload
from ramherd.agents.base import Cli
from ramherd.agents.event_lines import number, table, tables, text, word
from ramherd.agents.events import TOOLS_KEPT, Fact, Overload, Retry, Spent, ToolEnded, ToolStarted
from ramherd.agents.find_program import Program, Source
from ramherd.agents.heap import bun_environment, node_options
from ramherd.core.units import MIB

SOURCE = Source(
    agent="claude",
    names=("claude",),
    install="npm install -g @anthropic-ai/claude-code",
    package="@anthropic-ai/claude-code",
    oldest="2.0.0",
)


class WarmClaude:
    """Prompts as lines of JSON, one result each, without one of them seeing another."""

    def __init__(self) -> None:
        self.fresh = self.prompt("/clear")

    def start(self, program: Program, ask: Ask) -> Launch:
        warm = launch(program, ask, ("--input-format", "stream-json"))
        return replace(warm, stdin=self.prompt(ask.prompt), warm=True)

    def prompt(self, text: str) -> str:
        message = {"type": "user", "message": {"role": "user", "content": text}}
        return json.dumps(message) + "\n"


class Claude(Cli):
    source = SOURCE
    name = "claude"
    runtime = "bun"
    # In a cgroup: 140 MB dies at its start, 250 within 20 heavy prompts, 300 lives.
    floor_bytes = 400 * 10**6 // MIB * MIB
    names_sessions = True
    reports_cost = True
    holds_to_cost = True
    ours = (
        "-p", "--print", "--output-format", "--input-format", "--session-id", "-r", "--resume",
        "-c", "--continue", "--fork-session", "--from-pr", "--teleport", "--no-session-persistence",
        "--bg", "--background", "--cloud", "--desktop", "--remote-control", "--tmux", "-w",
        "--worktree", "--model", "--max-budget-usd",
    )  # fmt: skip
    warm = WarmClaude()

    def start(self, program: Program, ask: Ask) -> Launch:
        return launch(program, ask, ("--session-id", ask.session))

    def resume(self, program: Program, ask: Ask) -> Launch:
        return launch(program, ask, ("--resume", ask.session))

    def reader(self) -> "ClaudeReader":
        return ClaudeReader()


def launch(program: Program, ask: Ask, session: tuple[str, ...]) -> Launch:
    """Older ones are Node programs."""
    node = (program.node, *node_options(ask.heap_bytes)) if program.node else ()
    memory = {} if program.node else bun_environment(ask.heap_bytes)
    argv = [*node, program.file, "-p", "--output-format", "stream-json", "--verbose", *session]
    argv += ["--model", ask.model] if ask.model else []
    argv += ["--dangerously-skip-permissions"] if ask.skip_permissions else []
    argv += [] if ask.max_cost_usd is None else ["--max-budget-usd", f"{ask.max_cost_usd:.6f}"]
    # Fifty at once would all fetch the same update.
    return Launch((*argv, *ask.args), {"DISABLE_AUTOUPDATER": "1", **memory}, ask.prompt)


class ClaudeReader(MessagesReader):
    def __init__(self) -> None:
        super().__init__()
        self.behind: set[str] = set()

    def read(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        if text(event, "type") == "rate_limit_event":
            if text(event, "rate_limit_info", "status") == "rejected":
                yield Overload("rate limit")
        else:
            yield from super().read(event)

    def read_system(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        match text(event, "subtype"):
            case "api_retry":
                yield retry_of(event)
            case "background_tasks_changed":
                yield from self.read_tasks(event)
            case _:
                yield from super().read_system(event)

    def read_tasks(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        """Subagents behind: their tool call is answered at once, and they work on."""
        agents = {
            word(task, "task_id"): word(task, "subagent_type")
            for task in tables(event, "tasks")[:TOOLS_KEPT]
            if text(task, "task_type") == "local_agent"
        }
        yield from (ToolStarted(task, agents[task]) for task in agents if task not in self.behind)
        yield from (ToolEnded(task) for task in sorted(self.behind - set(agents)))
        self.behind = set(agents)

    def settle(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        """`modelUsage` has the subagents in it; both it and the cost go on over a resume."""
        since = usage_of(table(event, "model_usage_since_last_result"))
        if since == Spent():
            yield from super().settle(event)
        else:
            yield from self.correct(since.tokens_in, since.tokens_out)
            yield Spent(cost_usd=since.cost_usd)
        yield Spent(cost_usd=number(event, "total_cost_usd"), whole=True)


def usage_of(models: Mapping[str, Any]) -> Spent:
    tokens_in = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return Spent(
        int(sum(number(models, model, name) for model in models for name in tokens_in)),
        int(sum(number(models, model, "outputTokens") for model in models)),
        sum(number(models, model, "costUSD") for model in models),
    )


def retry_of(event: Mapping[str, Any]) -> Overload | Retry:
    problem = f"{number(event, 'error_status'):.0f} {word(event, 'error')}"
    wait_s = number(event, "retry_delay_ms") / 1000
    return Overload(problem, wait_s) if is_overload(problem) else Retry(problem, wait_s)


AGENT = Claude()
