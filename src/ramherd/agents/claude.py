"""Claude Code: a native binary (Bun). We choose session ids; one process takes many prompts."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ramherd.agents import Launch, LaunchRequest, WarmPrompts
from ramherd.agents.allow_rules import as_options
from ramherd.agents.anthropic_events import MessagesReader
from ramherd.agents.api_errors import MODELS, is_overload
from ramherd.agents.base import Cli
from ramherd.agents.find_program import AgentProgram, Source
from ramherd.agents.heap import bun_environment, node_options
from ramherd.agents.json_lines import (
    LINE_BYTES,
    MOST,
    count,
    number,
    table,
    tables,
    text,
    word,
)
from ramherd.agents.progress import (
    TOOLS_KEPT,
    Billed,
    Fact,
    ModelCost,
    NearUsageLimit,
    Overload,
    Retry,
    Spent,
    TokenUsage,
    ToolEnded,
    ToolStarted,
)
from ramherd.core.agent_task import NO_ACCESS, ApiRefusal
from ramherd.core.units import MIB
from ramherd.decide.token_prices import OUTPUT, TokenCounts, output_units

USAGE_NAMES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

SOURCE = Source(
    agent="claude",
    names=("claude",),
    install="npm install -g @anthropic-ai/claude-code",
    package="@anthropic-ai/claude-code",
    oldest="2.0.0",
)


# No key, no login, no credit, or no right to use this API.
DENIED = (401, 402, 403)


def render_prompt(text: str) -> str:
    """A line of JSON for a process that takes several prompts, with one result for each."""
    message = {"type": "user", "message": {"role": "user", "content": text}}
    return json.dumps(message) + "\n"


def start_warm(program: AgentProgram, request: LaunchRequest) -> Launch:
    warm = launch(program, request, ("--input-format", "stream-json"))
    return replace(warm, stdin=render_prompt(request.prompt), warm=True)


class Claude(Cli):
    source = SOURCE
    name = "claude"
    runtime = "bun"
    # In a cgroup: with 140 MB it dies at its start, with 250 within 20 heavy prompts, not with 300.
    floor_bytes = 400 * 10**6 // MIB * MIB
    names_sessions = True
    reports_cost = True
    holds_to_cost = True
    account_env = (
        "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR",
        "ANTHROPIC_BASE_URL", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "AWS_PROFILE",
    )  # fmt: skip
    ours = (
        "-p", "--print", "--output-format", "--input-format", "--session-id", "-r", "--resume",
        "-c", "--continue", "--fork-session", "--from-pr", "--teleport", "--no-session-persistence",
        "--bg", "--background", "--cloud", "--desktop", "--remote-control", "--tmux", "-w",
        "--worktree", "--model", "--max-budget-usd",
    )  # fmt: skip
    warm = WarmPrompts(fresh=render_prompt("/clear"), start=start_warm, prompt=render_prompt)

    def start(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return launch(program, request, ("--session-id", request.session))

    def resume(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return launch(program, request, ("--resume", request.session))

    def attach(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        node = (program.node,) if program.node else ()
        return Launch((*node, program.file, "--resume", request.session, *settings(request)))

    def reader(self) -> "ClaudeReader":
        return ClaudeReader()


def launch(program: AgentProgram, request: LaunchRequest, session: tuple[str, ...]) -> Launch:
    """Older versions are Node programs."""
    node = (program.node, *node_options(request.heap_bytes)) if program.node else ()
    memory = {} if program.node else bun_environment(request.heap_bytes)
    argv = [*node, program.file, "-p", "--output-format", "stream-json", "--verbose", *session]
    if request.max_cost_usd is not None:
        argv += ["--max-budget-usd", f"{request.max_cost_usd:.6f}"]
    # Fifty runs at once would all fetch the same update.
    env = {"DISABLE_AUTOUPDATER": "1", **memory}
    return Launch((*argv, *settings(request)), env, request.prompt)


def settings(request: LaunchRequest) -> tuple[str, ...]:
    argv = ["--model", request.model] if request.model else []
    argv += ["--dangerously-skip-permissions"] if request.skip_permissions else []
    return (*argv, *request.args, *as_options("--allowedTools", "claude", request.allow, "Bash"))


class ClaudeReader(MessagesReader):
    any_arguments = ":*"

    def __init__(self) -> None:
        super().__init__()
        self.behind: set[str] = set()
        # The first message whose cost is not reported yet.
        self.unbilled = ""

    def read(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        if text(event, "type") == "rate_limit_event":
            yield from read_limit(table(event, "rate_limit_info"))
        else:
            yield from super().read(event)

    def read_system(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        match text(event, "subtype"):
            case "api_retry":
                yield retry_of(event)
            case "background_tasks_changed":
                yield from self.read_tasks(event)
            case "permission_denied" if call := self.open.get(word(event, "tool_use_id")):
                # Also in the result, which a stopped run does not reach.
                self.denied.add(word(event, "tool_use_id"))
                yield call
            case _:
                yield from super().read_system(event)

    def read_tasks(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        """Subagents in the background: their tool call is answered at once, and they continue."""
        agents = {
            word(task, "task_id"): word(task, "subagent_type")
            for task in tables(event, "tasks")[:TOOLS_KEPT]
            if text(task, "task_type") == "local_agent"
        }
        yield from (ToolStarted(task, agents[task]) for task in agents if task not in self.behind)
        yield from (ToolEnded(task) for task in sorted(self.behind - set(agents)))
        self.behind = set(agents)

    def read_assistant(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        message = table(event, "message")
        is_first = word(message, "id") not in self.messages
        yield from super().read_assistant(event)
        if (model := model_name(word(message, "model"))) is None:
            return
        letters = sum(count_letters(part) for part in tables(message, "content"))
        units = output_units(letters)
        if is_first:
            units = max(units, OUTPUT * count(message, "usage", "output_tokens"))
            units += counts_of(table(message, "usage"))._replace(output=0).units
        is_own = not word(event, "parent_tool_use_id")
        yield from self.count_units(word(message, "id"), model, units, is_own=is_own and is_first)

    def count_units(
        self, message: str, model: str, units: float, *, is_own: bool
    ) -> Iterator[Fact]:  # fmt: skip
        """`is_own`: the message is new, and from the agent itself."""
        if is_own and not self.unbilled:
            self.unbilled = message
        yield TokenUsage(model, units, is_own)

    def read_long(self, found: Mapping[str, str]) -> Iterator[Fact]:
        """The ends of the line have its numbers; its length is a lower bound for the output."""
        message, model = found.get("id", ""), model_name(found.get("model", ""))
        is_first = message not in self.messages
        if "num_turns" in found and "total_cost_usd" in found:
            yield from self.bill(parse_number(found["total_cost_usd"]))
        yield from super().read_long(found)
        if found.get("type") == "assistant" and model is not None:
            numbers = {name: parse_number(found.get(name, "")) for name in USAGE_NAMES}
            units = counts_of(numbers)._replace(output=0).units if is_first else 0.0
            is_own = is_first and not found.get("parent_tool_use_id")
            yield from self.count_units(
                message, model, units + output_units(LINE_BYTES), is_own=is_own
            )  # fmt: skip

    def bill(self, total_usd: float) -> Iterator[Fact]:
        self.unbilled = ""
        yield Spent(cost_usd=total_usd, whole=True)
        yield Billed()

    def read_usage(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        """`modelUsage` includes subagents; it and the cost keep counting across a resume."""
        models = table(event, "model_usage_since_last_result")
        since = usage_of(models)
        if since == Spent():
            yield from super().read_usage(event)
        else:
            yield from self.correct(since.tokens_in, since.tokens_out)
            yield Spent(cost_usd=since.cost_usd)
        if "total_cost_usd" in event:
            yield from self.bill(number(event, "total_cost_usd"))
        for name in models or table(event, "modelUsage"):
            used = table(models or event["modelUsage"], name)
            if (model := model_name(name)) is not None:
                yield ModelCost(model, model_counts(used).units, number(used, "costUSD"))


def usage_of(models: Mapping[str, Any]) -> Spent:
    tokens_in = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return Spent(
        int(sum(number(models, model, name) for model in models for name in tokens_in)),
        int(sum(number(models, model, "outputTokens") for model in models)),
        sum(number(models, model, "costUSD") for model in models),
    )


def model_name(name: str) -> str | None:
    """The name without the context size, as in "claude-opus[1m]"; None for a message that Claude
    Code wrote itself.
    """
    return None if not name or name.startswith("<") else name.partition("[")[0]


def count_letters(part: Mapping[str, Any]) -> int:
    """The letters that the model wrote in one part of its message."""
    written = text(part, "text") or text(part, "thinking")
    return len(written) if written else len(json.dumps(part.get("input", "")))


def counts_of(usage: Mapping[str, Any]) -> TokenCounts:
    """The tokens of one message."""
    hour = number(usage, "cache_creation", "ephemeral_1h_input_tokens")
    written = number(usage, "cache_creation_input_tokens")
    return TokenCounts(
        number(usage, "input_tokens"), max(written - hour, 0), hour,
        number(usage, "cache_read_input_tokens"), number(usage, "output_tokens"),
    )  # fmt: skip


def model_counts(used: Mapping[str, Any]) -> TokenCounts:
    """The tokens of all messages of one model, from a result."""
    hour = number(used, "cacheCreationEphemeral1hInputTokens")
    written = number(used, "cacheCreationInputTokens")
    return TokenCounts(
        number(used, "inputTokens"), max(written - hour, 0), hour,
        number(used, "cacheReadInputTokens"), number(used, "outputTokens"),
    )  # fmt: skip


def parse_number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return 0.0
    return found if 0 <= found < MOST else 0.0


def read_limit(info: Mapping[str, Any]) -> Iterator[Fact]:
    """Printed for accounts with a plan, when the API reports a change of their windows."""
    window, until_s = word(info, "rateLimitType"), number(info, "resetsAt") or None
    match text(info, "status"):
        case "rejected":
            what = f"usage limit reached ({window})" if window else "usage limit reached"
            yield ApiRefusal(what, window, until_s, MODELS.get(window, ""))
        case "allowed_warning":
            yield NearUsageLimit(window, number(info, "utilization") or None, until_s)


def retry_of(event: Mapping[str, Any]) -> Overload | Retry | ApiRefusal:
    """After a 401, claude requests a new token once; then it keeps trying for three minutes."""
    status = number(event, "error_status")
    problem = f"{status:.0f} {word(event, 'error')}"
    wait_s = number(event, "retry_delay_ms") / 1000
    if status in DENIED and number(event, "attempt") > 1:
        return ApiRefusal(problem, NO_ACCESS)
    return Overload(problem, wait_s) if is_overload(problem) else Retry(problem, wait_s)


AGENT = Claude()
