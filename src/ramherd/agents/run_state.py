"""One run of an agent, and the state that the runs of a job leave for the next run.

That state is stored with the job, so that another supervisor can continue.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ramherd.agents import Agent, Launch
from ramherd.agents.api_errors import is_overload
from ramherd.agents.gemini_history import read_last_run
from ramherd.agents.json_lines import Events
from ramherd.agents.price_book import PriceBook
from ramherd.agents.progress import (
    Denied,
    Fact,
    ModelCost,
    Overload,
    Progress,
    Retry,
    SessionOpened,
    Spent,
    after_fact,
    after_spending,
)
from ramherd.core.agent_task import name_call
from ramherd.core.model import ApiRefusal, Reason, Said
from ramherd.core.units import format_duration
from ramherd.decide.stalls import OutputSilence, next_silence
from ramherd.measure.last_error import parse_last_error
from ramherd.measure.run_output import Follower

# Read from one run in one step: at most 10 ms of parsing.
STEP_BYTES = 512 << 10
TOLD_LENGTH = 300
DENIED_NAMED = 5
# The parts of an agent's progress that are kept after its run.
KEPT = (
    "session", "turns", "tokens_in", "tokens_out", "cost_usd", "overloads", "retries",
    "estimate_usd", "is_billed",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Past:
    """The state after a job's runs: its session, and the usage of earlier sessions."""

    progress: Progress = field(default_factory=Progress)
    before: Spent = field(default_factory=Spent)
    turns_before: int = 0
    # The heap that it gets since its heap was too small once.
    heap_bytes: int = 0

    @property
    def spent(self) -> Spent:
        whole = after_spending(self.progress, replace(self.before, whole=False))
        return Spent(
            whole.tokens_in, whole.tokens_out, whole.cost_usd, estimate_usd=whole.estimate_usd
        )

    def as_json(self) -> dict[str, Any]:
        before = self.before
        return {
            **{name: getattr(self.progress, name) for name in KEPT},
            "before": [before.tokens_in, before.tokens_out, before.cost_usd, before.estimate_usd],
            "reply": list(self.progress.reply),
            "unpriced": [list(one) for one in self.progress.unpriced],
            "turns_before": self.turns_before,
            "heap_bytes": self.heap_bytes,
            "denied": [[one.tool, one.what, one.allow] for one in self.progress.denied],
            # The sum, for the total of a herd.
            "spent_usd": self.spent.total_usd,
        }


def past_from_json(kept: Mapping[str, Any]) -> Past:
    denied = tuple(Denied(*one) for one in kept.get("denied", ()))
    model, units = kept.get("reply", ("", 0.0))
    unpriced = tuple((name, count) for name, count in kept.get("unpriced", ()))
    return Past(
        # Earlier versions had no estimates.
        Progress(
            **{name: kept[name] for name in KEPT if name in kept},
            denied=denied,
            reply=(model, units),
            unpriced=unpriced,
        ),
        parse_spent(*kept["before"]),
        kept["turns_before"],
        kept["heap_bytes"],
    )


def parse_spent(tokens_in: int, tokens_out: int, cost: float, estimate: float = 0.0) -> Spent:
    return Spent(tokens_in, tokens_out, cost, estimate_usd=estimate)


@dataclass
class Renewal:
    """A new session, requested from a warm process after its job."""

    since_s: float
    progress: Progress = field(default_factory=Progress)

    @property
    def is_answered(self) -> bool:
        return self.progress.result is not None or self.progress.failure is not None

    @property
    def is_new(self) -> bool:
        """Whether the agent reported a session other than the previous one."""
        return self.progress.result is not None and self.progress.opened


@dataclass
class AgentRun:
    """One run of an agent: the command that was started, and the agent's reports."""

    agent: Agent
    launch: Launch
    model: str
    follower: Follower
    events: Events
    # The state for the next run of its job, if this run leaves none.
    past: Past = field(default_factory=Past)
    progress: Progress = field(default_factory=Progress)
    # The usage of earlier sessions of its job.
    before: Spent = field(default_factory=Spent)
    turns_before: int = 0
    limit_usd: float | None = None
    share_usd: float | None = None
    heap_bytes: int = 0
    resumed: bool = False
    # Why `model` is the fallback_model of its job.
    fallback: Reason | None = None
    # Why it has no MCP servers, although its job names some.
    no_servers: Reason | None = None
    is_read: bool = False
    renewal: Renewal | None = None
    # The progress that was recorded last.
    recorded: Progress | None = None
    # Its working directory, and the program from a setting instead of the one in PATH.
    cwd: str = ""
    program: str = ""
    # Why it failed, as the CLI reported it.
    error: str = ""
    prices: PriceBook = field(default_factory=PriceBook)
    # When its silence began, and how long it has lasted.
    silence: OutputSilence | None = None
    silent_s: float = 0.0
    # How long its oldest open tool call has run; and when each of them began.
    open_tool_s: float = 0.0
    _tools_began_s: dict[str, float] = field(default_factory=dict)
    _printed: int = 0
    # How long it waits for its API, by its last report.
    _wait_s: float = 0.0
    # The usage that counts against its limit, in total and of this run alone, and its inputs.
    _counted: tuple[Progress, int, Spent, float] | None = None

    def go_on(self, session: str) -> None:
        """Continues its job in an existing session, or in a new one."""
        past, self.resumed = self.past, bool(session)
        if session:
            self.progress = past.progress.resumed()
            self.before, self.turns_before = past.before, past.turns_before
        else:
            self.before = past.spent
            self.turns_before = past.turns_before + past.progress.turns

    def read(self, *, closed: bool) -> list[Fact]:
        """Returns new facts. `closed`: no more output will follow."""
        facts = [f for piece in self.follower.read(STEP_BYTES) for f in self.events.feed(piece)]
        if closed and not self.is_read and not self.follower.is_behind:
            self.is_read = True
            facts += self.events.close()
        for fact in facts:
            self._record(fact)
        if facts:
            waits = [fact.wait_s for fact in facts if isinstance(fact, Overload | Retry)]
            self._wait_s = max(waits, default=0.0)
        return facts

    def measure_silence(self, at_s: float, uncounted_s: float) -> OutputSilence:
        """Called after a `read`."""
        has_printed, self._printed = self.follower.at != self._printed, self.follower.at
        self.silence = next_silence(
            self.silence or OutputSilence(at_s, uncounted_s), at_s=at_s, uncounted_s=uncounted_s,
            has_printed=has_printed, wait_s=self._wait_s,
        )  # fmt: skip
        self.silent_s = self.silence.length_s(at_s, uncounted_s)
        return self.silence

    def measure_tools(self, worked_s: float) -> None:
        """Called after a `read`, until the run is stopped: a stop loses the open tool calls. The
        clock stops while the run is held.
        """
        tools, began_s = self.progress.tools, self._tools_began_s
        if tools or began_s:
            self._tools_began_s = {id_: began_s.get(id_, worked_s) for id_, _name in tools}
            self.open_tool_s = worked_s - min(self._tools_began_s.values(), default=worked_s)

    def _record(self, fact: Fact) -> None:
        """A session that starts after the result belongs to another job. A supervisor that reads
        the output again later gets the same facts.
        """
        at = self.progress
        if isinstance(fact, ModelCost):
            self.prices.learn(self.agent.name, fact.model, fact.units, fact.cost_usd)
        if isinstance(fact, SessionOpened) and at.result is not None and fact.id != at.session:
            self.renewal = self.renewal or Renewal(0.0)
        if self.renewal is not None:
            self.renewal.progress = after_fact(self.renewal.progress, fact)
        else:
            self.progress = after_fact(at, fact)

    def set_refusal(self, refusal: ApiRefusal) -> None:
        """Replaces the refusal by one with the time in its text."""
        self.progress = replace(self.progress, refusal=refusal)

    def renew(self, at_s: float) -> str:
        """Returns the request for a new session: later output is not about this job."""
        assert self.agent.warm is not None
        self.renewal = Renewal(at_s)
        return self.agent.warm.fresh

    def count_unreported(self, env: Mapping[str, str]) -> None:
        """gemini reports tokens with its result, claude its cost: for a stopped run they come from
        its history.
        """
        at = self.progress
        if self.agent.name == "gemini" and at.opened and at.result is None and at.failure is None:
            self.progress = after_spending(at, read_last_run(at.session, env))
        if self.agent.name == "claude" and at.unreported:
            self._read_unbilled(env)

    def _read_unbilled(self, env: Mapping[str, str]) -> None:
        from ramherd.agents.claude import ClaudeReader  # noqa: PLC0415 - loaded already
        from ramherd.agents.claude_history import read_messages_since  # noqa: PLC0415 - rarely used

        reader = self.events.reader
        assert isinstance(reader, ClaudeReader)
        found = read_messages_since(self.progress.session, reader.unbilled, env)
        if not found:
            return
        units: dict[str, float] = {}
        for message in found:
            units[message.model] = units.get(message.model, 0.0) + message.tokens.units
        tokens_in = sum(message.tokens_in for message in found)
        tokens_out = sum(message.tokens_out for message in found)
        for fact in reader.correct(tokens_in, tokens_out):
            self._record(fact)
        self.progress = replace(self.progress, unreported=tuple(units.items()))

    def _price(self, model: str) -> float | None:
        return self.prices.find(self.agent.name, model)

    @property
    def reply_usd(self) -> float:
        """The cost of the last reply, an estimate for the next; 0 if no price is known."""
        model, units = self.progress.reply
        return units * (self._price(model) or 0.0)

    @property
    def said(self) -> Said:
        at = self.progress
        return Said(
            result=at.result is not None,
            busy=bool(at.tools),
            needs_result=self.agent.needs_result,
            failure=one_line(at.failure or ""),
            overloaded=at.failure is not None and is_overload(at.failure),
            cost_usd=self.counted.total_usd,
            limit_usd=self.limit_usd,
            share_usd=self.share_usd,
            lost_session=self.resumed and not at.opened,
            refusal=at.refusal,
        )

    @property
    def doing(self) -> str:
        """The turn and the tool, for the live display."""
        turns = self.turns_before + self.progress.turns
        doing = f"turn {turns} {self.progress.tool}".rstrip() if turns else ""
        if self.silence is None or not self.silence.is_reported:
            return doing
        return f"{doing} silent for {format_duration(self.silent_s)}".lstrip()

    @property
    def spent(self) -> Spent:
        return self.leaves.spent

    @property
    def is_cost_known(self) -> bool:
        """Whether the agent reported the cost, or it was estimated from tokens."""
        at = self.progress
        return (
            at.result is not None
            or at.failure is not None
            or (self.cost_here_usd > 0 and not self.leaves.progress.unpriced)
        )

    @property
    def counted(self) -> Spent:
        """The usage that counts against a limit during the run. A CLI that enforces its limit
        itself counts the cost of this run.
        """
        return self._count()[0]

    @property
    def counted_here_usd(self) -> float:
        return self._count()[1]

    def _count(self) -> tuple[Spent, float]:
        """Called in every step of the loop: computed again only after a change."""
        at, version = self.progress, self.prices.version
        if self._counted is None or self._counted[0] is not at or self._counted[1] != version:
            left = self.leaves
            spent = (replace(left, progress=at) if self.agent.holds_to_cost else left).spent
            here_usd = spent.total_usd - self.past.spent.total_usd
            self._counted = at, version, spent, here_usd
        return self._counted[2:]

    @property
    def cost_here_usd(self) -> float:
        """The cost of this run alone."""
        return self.spent.total_usd - self.past.spent.total_usd

    @property
    def leaves(self) -> Past:
        """The state for the next run of its job if this run ended now: unreported cost is estimated
        then.
        """
        at = self.progress
        costs = [
            (model, units, self._price(model)) for model, units in (*at.unreported, *at.unpriced)
        ]
        estimate_usd = sum(units * price for _model, units, price in costs if price is not None)
        progress = replace(
            at,
            unreported=(),
            estimate_usd=at.estimate_usd + estimate_usd,
            unpriced=tuple((model, units) for model, units, price in costs if price is None),
        )
        return Past(progress, self.before, self.turns_before, self.past.heap_bytes)

    def as_json(self) -> dict[str, Any]:
        left, at = self.leaves, self.progress
        spent = left.spent
        is_known = self.agent.reports_cost and (spent.total_usd > 0 or at.is_billed)
        is_estimate = spent.estimate_usd > 0 or bool(left.progress.unpriced)
        return {
            "session": at.session or None,
            "turns": self.turns_before + at.turns,
            "tokens_in": spent.tokens_in,
            "tokens_out": spent.tokens_out,
            "cost_usd": round(spent.total_usd, 6) if is_known else None,
            "cost_is_estimate": is_estimate if is_known else None,
            "result": at.result,
            "model": self.model or None,
            "fallback": self.fallback.as_json() if self.fallback is not None else None,
            "denied": [describe_denied(denied, self.cwd) for denied in at.denied],
            "error": self.error or None,
            "resume": self.resume_command or None,
        }

    @property
    def denied_calls(self) -> list[str]:
        """The first refused tool calls, each in a few words."""
        named = [describe_denied(one, self.cwd) for one in self.progress.denied[:DENIED_NAMED]]
        return [name_call(one["tool"], one["what"]) for one in named]

    @property
    def resume_command(self) -> str:
        """For a shell, without ramherd; "" if there is no session to continue."""
        if not self.progress.session or not self.agent.resumes:
            return ""
        from shlex import join, quote  # noqa: PLC0415 - only for agents that have a session

        argv = self.agent.attach_argv(self.progress.session, self.program)
        return f"cd {quote(self.cwd)} && {join(argv)}"

    def read_errors(self, printed: str, *, is_failed: bool) -> None:
        """`printed` is the end of its stderr. It has the cause of a failure that the agent itself
        did not report.
        """
        for fact in self.agent.read_errors(printed):
            self._record(fact)
        if is_failed:
            self.error = one_line(self.progress.failure or "") or parse_last_error(printed)

    @property
    def has_news(self) -> bool:
        return self.progress is not self.recorded

    @property
    def has_new_session(self) -> bool:
        return self.recorded is not None and self.progress.session != self.recorded.session

    def next_record(self) -> dict[str, Any]:
        """The same for the store, with the state that another supervisor needs to continue."""
        self.recorded = self.progress
        run = {
            "share_usd": self.share_usd, "heap_bytes": self.heap_bytes, "resumed": self.resumed,
            # For a supervisor that continues without having read the output of this run.
            "leaves": self.leaves.as_json(),
        }  # fmt: skip
        return {**self.as_json(), "past": self.past.as_json(), "run": run}


def describe_denied(denied: Denied, cwd: str) -> dict[str, str]:
    """Shortens paths below the job's directory."""
    return {
        "tool": denied.tool,
        "what": denied.what.removeprefix(f"{cwd}/"),
        "allow": denied.allow,
    }


def one_line(text: str) -> str:
    """The message of a failed agent may be pages long."""
    words = " ".join(text.split())
    return words if len(words) <= TOLD_LENGTH else words[: TOLD_LENGTH - 3] + "..."
