"""The facts that agents report, the same for all CLIs, and the progress that results from them.

A turn is one reply of the model with the tools that it called. Between `TurnEnded` and the next
`TurnStarted` the agent waits for the API and no tool runs: the best moment to judge its memory, and
the moment at which a stop loses least.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ramherd.agents.api_errors import find_window, is_denial, is_overload, is_usage_limit
from ramherd.core.agent_task import NO_ACCESS, ApiRefusal
from ramherd.decide.token_prices import estimate_left

# Smaller than any cost: the rounding error of a sum.
NOTHING_USD = 1e-9
TEXT_LENGTH = 16_384
TOO_LONG = "(too long to keep)"
# Of the output of a tool.
OUTPUT_LENGTH = 2000
# Claude limits its subagents to 20; more open tools than this are not counted.
TOOLS_KEPT = 100
# At most this many refused calls are kept.
DENIED_KEPT = 20


@dataclass(frozen=True, slots=True)
class SessionOpened:
    id: str


@dataclass(frozen=True, slots=True)
class TurnStarted:
    pass


@dataclass(frozen=True, slots=True)
class TurnEnded:
    pass


@dataclass(frozen=True, slots=True)
class ModelText:
    """Text of the model for the user. `is_part`: the next message continues it."""

    text: str
    is_part: bool = False
    by_subagent: bool = False


@dataclass(frozen=True, slots=True)
class ToolStarted:
    id: str
    name: str
    # The main argument of the call: the command, the path.
    argument: str = ""
    by_subagent: bool = False


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """`output` is the beginning of the tool's output, which had this many `lines`."""

    id: str
    output: str = ""
    lines: int = 0
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class CliWarning:
    """A warning of the CLI that does not end the run."""

    text: str


@dataclass(frozen=True, slots=True)
class Spent:
    """More tokens and cost; with `whole`, the least total of the session since its beginning."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    whole: bool = False
    # The estimated cost of unreported tokens.
    estimate_usd: float = 0.0

    @property
    def total_usd(self) -> float:
        return self.cost_usd + self.estimate_usd


@dataclass(frozen=True, slots=True)
class Result:
    """The agent reports success, with its last reply."""

    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The agent gives up."""

    text: str


@dataclass(frozen=True, slots=True)
class Overload:
    """The API refuses because of its load; the agent may try again itself."""

    text: str
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Retry:
    """The agent tries again after another error of the API."""

    text: str
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Denied:
    """A tool call that the CLI refused, because no user could allow it. `allow` is the rule that
    would have allowed it, for `ramherd retry --allow`, or "" if there is none.
    """

    tool: str
    what: str = ""
    allow: str = ""


@dataclass(frozen=True, slots=True)
class NearUsageLimit:
    """The API still serves the account; the used share of a window (None: not reported)."""

    window: str
    used_share: float | None = None
    until_s: float | None = None


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens whose cost is not reported yet, in units (`decide/token_prices.py`). `starts_reply`:
    they are the first tokens of a new reply of the agent itself.
    """

    model: str
    units: float
    starts_reply: bool = False


@dataclass(frozen=True, slots=True)
class ModelCost:
    """The cost that the agent reports for these units of one model."""

    model: str
    units: float
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Billed:
    """The agent has reported the cost of everything up to here."""


Fact = (
    SessionOpened | TurnStarted | TurnEnded | ModelText | ToolStarted | ToolEnded | CliWarning
    | Spent | Result | Failure | Overload | Retry | Denied | ApiRefusal | NearUsageLimit
    | TokenUsage | ModelCost | Billed
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a job as its agent reports it; the next run starts with `resumed`."""

    session: str = ""
    # Whether this run opened a session: a resumed run that ends without one did not find its
    # session.
    opened: bool = False
    turns: int = 0
    in_turn: bool = False
    tools: tuple[tuple[str, str], ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    # The estimated cost that earlier runs of the session never reported; and their units without a
    # known price.
    estimate_usd: float = 0.0
    unpriced: tuple[tuple[str, float], ...] = ()
    # Units of each model in this run that are not reported yet.
    unreported: tuple[tuple[str, float], ...] = ()
    # Whether a cost was reported, even if it was 0.
    is_billed: bool = False
    # The model and the units of the last reply.
    reply: tuple[str, float] = ("", 0.0)
    result: str | None = None
    failure: str | None = None
    overloads: int = 0
    retries: int = 0
    denied: tuple[Denied, ...] = ()
    # Why the API stopped serving this run.
    refusal: ApiRefusal | None = None

    @property
    def is_between_turns(self) -> bool:
        """Whether a stop now loses only the reply that the agent waits for."""
        return bool(self.session) and not self.in_turn and not self.tools

    @property
    def tool(self) -> str:
        """The tool in use; the latest of several."""
        return self.tools[-1][1] if self.tools else ""

    def resumed(self) -> "Progress":
        """The progress at the start of another run of the same job."""
        return replace(
            self, opened=False, in_turn=False, tools=(), result=None, failure=None, refusal=None
        )


def next_progress(before: Progress, facts: Iterable[Fact]) -> Progress:
    for fact in facts:
        before = after_fact(before, fact)
    return before


def after_fact(at: Progress, fact: Fact) -> Progress:  # noqa: C901, PLR0911, PLR0912 - a line each
    match fact:
        case SessionOpened(id):
            return replace(at, session=id, opened=True)
        case TurnStarted():
            return replace(at, in_turn=True, turns=at.turns + 1, refusal=None)
        case TurnEnded():
            return replace(at, in_turn=False)
        case ModelText() | CliWarning() | NearUsageLimit():
            return at
        case ToolStarted(id, name):
            return replace(at, tools=(*without(at.tools, id), (id, name)))
        case ToolEnded(id):
            return replace(at, tools=without(at.tools, id))
        case Spent():
            return after_spending(at, fact)
        case Result(text):
            return replace(at, result=text, failure=None, in_turn=False)
        case Failure(text):
            return replace(at, failure=text, result=None, in_turn=False)
        case Overload():
            return replace(at, overloads=at.overloads + 1)
        case ApiRefusal():
            return replace(at, refusal=choose_refusal(at.refusal, fact))
        case Retry():
            return replace(at, retries=at.retries + 1)
        case TokenUsage():
            return after_usage(at, fact)
        case Billed():
            return replace(at, unreported=(), is_billed=True)
        case ModelCost():
            return at
        case Denied():
            return after_denial(at, fact)


def without(tools: tuple[tuple[str, str], ...], id: str) -> tuple[tuple[str, str], ...]:  # noqa: A002
    return tuple(tool for tool in tools if tool[0] != id)


def after_denial(at: Progress, denied: Denied) -> Progress:
    """Ignores repeats: a CLI may report a refusal twice, and a model may repeat a call."""
    if denied in at.denied or len(at.denied) >= DENIED_KEPT:
        return at
    return replace(at, denied=(*at.denied, denied))


def after_spending(at: Progress, spent: Spent) -> Progress:
    """Some CLIs keep counting across a resume, others start from zero: neither is counted twice.
    The next run's report about a stopped run replaces the estimate.
    """
    if spent.whole:
        gain_usd = max(spent.cost_usd - at.cost_usd, 0.0)
        return replace(
            at,
            tokens_in=max(at.tokens_in, spent.tokens_in),
            tokens_out=max(at.tokens_out, spent.tokens_out),
            cost_usd=max(at.cost_usd, spent.cost_usd),
            estimate_usd=estimate_left(at.estimate_usd, gain_usd),
            unpriced=at.unpriced if gain_usd <= NOTHING_USD else (),
            is_billed=at.is_billed or spent.cost_usd > 0,
        )
    return replace(
        at,
        tokens_in=at.tokens_in + spent.tokens_in,
        tokens_out=at.tokens_out + spent.tokens_out,
        cost_usd=at.cost_usd + spent.cost_usd,
        estimate_usd=at.estimate_usd + spent.estimate_usd,
        is_billed=at.is_billed or spent.cost_usd > 0,
    )


def after_usage(at: Progress, usage: TokenUsage) -> Progress:
    units = dict(at.unreported)
    units[usage.model] = units.get(usage.model, 0.0) + usage.units
    before = 0.0 if usage.starts_reply else at.reply[1]
    return replace(
        at, unreported=tuple(units.items()), reply=(usage.model, before + usage.units)
    )  # fmt: skip


def failures(text: str) -> list[ApiRefusal | Overload | Failure]:
    """The facts of an agent that gave up, including the API error in its text."""
    failure = Failure(clip(text) or "the agent gave no reason")
    trouble = trouble_in(failure.text)
    return [failure] if trouble is None else [trouble, failure]


def trouble_in(text: str) -> ApiRefusal | Overload | None:
    if is_denial(text):
        return ApiRefusal(text, NO_ACCESS)
    if is_usage_limit(text):
        window, model = find_window(text)
        return ApiRefusal(text, window, model=model)
    return Overload(text) if is_overload(text) else None


def choose_refusal(before: ApiRefusal | None, new: ApiRefusal) -> ApiRefusal:
    """An event has the time of the reset; the text after it is for users."""
    if before is None or new.until_s is not None or before.until_s is None:
        return new
    return replace_text(before, new.what)


def replace_text(refusal: ApiRefusal, what: str) -> ApiRefusal:
    return ApiRefusal(what, refusal.window, refusal.until_s, refusal.model)


def clip(text: str) -> str:
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 3] + "..."


def tool_ended(id: str, output: str, *, is_error: bool = False) -> ToolEnded:  # noqa: A002
    output = output.strip("\n")
    lines = output.count("\n") + 1 if output else 0
    return ToolEnded(id, output[:OUTPUT_LENGTH], lines, is_error)
