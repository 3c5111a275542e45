"""The result of each job, as a few lines of text: its answer, its changes, its cost, and commands
to type next. The end of `ramherd run`, `ramherd results` and `ramherd show` print these lines.
"""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from textwrap import wrap
from typing import Any

from ramherd.core.agent_task import name_call
from ramherd.core.reasons import Why, reason_from_json
from ramherd.core.units import count
from ramherd.decide.job_bases import BLOCKED
from ramherd.show.cost_text import render_cost, render_usd
from ramherd.show.event_lines import printable
from ramherd.show.reasons import render_reason

Result = Mapping[str, Any]

INDENT = " " * 10
# Up to this many jobs are shown with all their lines at the end of a run; of more jobs, one line
# each.
MOST_BLOCKS, MOST_LINES = 8, 20
# Lines of an answer: of the only job, of one of some jobs, and of one of several.
ALONE_LINES, SOME_LINES, FEW_LINES = 8, 4, 2
SOME_JOBS = 3
# The longest job name in a suggested command.
LONGEST_NAME = 24
CALLS_SHOWN, RULES_SHOWN, LEFT_OUT_SHOWN = 5, 3, 5


def render_results(results: Sequence[Result], width: int = 80, *, every: bool = False) -> list[str]:
    """Jobs that have something to report. Without `every`, many jobs get one line each, and those
    that did not simply succeed come first.
    """
    telling = [result for result in results if is_telling(result)]
    if not every and len(telling) > MOST_BLOCKS:
        return render_many(sorted(telling, key=is_plain_success), width)
    most = choose_answer_lines(len(telling), every=every)
    return [line for one in telling for line in render_result(one, width, most)]


def choose_answer_lines(jobs: int, *, every: bool) -> int:
    """The number of lines of each answer."""
    if jobs == 1:
        return ALONE_LINES
    return SOME_LINES if every or jobs <= SOME_JOBS else FEW_LINES


def render_many(results: Sequence[Result], width: int) -> list[str]:
    lines = [clip_line(render_head(result), width) for result in results[:MOST_LINES]]
    if len(results) > MOST_LINES:
        lines.append(f"{INDENT}and {len(results) - MOST_LINES} more: ramherd results")
    if failed := [one for one in results if one["state"] == "failed" and one["runs"]]:
        lines.append(printable(f"{INDENT}see: ramherd logs {render_address(failed[0])}"))
    return lines


def render_address(result: Result) -> str:
    """The job as a command takes it: by name, if the name is short. By number if the name means
    another job (`by_number`): a newer herd has a job of that name, or the name is all digits.
    """
    name, number = result["job"], result.get("number")
    by_number = result.get("by_number") or name.isdigit() or len(name) > LONGEST_NAME
    return str(number) if by_number and number is not None else quote(name)


def state_of(job: Mapping[str, Any]) -> str:
    """The stored state of a job whose ramherd was killed is out of date."""
    return "lost" if job.get("reason", {}).get("why") == Why.OWNER_LOST else str(job["state"])


def is_agent(result: Result) -> bool:
    return result.get("turns") is not None


def is_answer(result: Result) -> bool:
    return result["state"] == "done" and is_agent(result)


def is_telling(result: Result) -> bool:
    """False for a command that is done, and for a job that never ran because of others. A job that
    waits for the user is reported.
    """
    if result["state"] == "done":
        return is_agent(result)
    if result["state"] == "cancelled":
        return bool(result.get("resume"))
    if result["state"] == "waiting":
        return result["reason"]["why"] in BLOCKED
    return bool(result["state"] != "queued")


def is_plain_success(result: Result) -> bool:
    return result["state"] == "done" and not result.get("denied")


def render_result(result: Result, width: int = 80, answer_lines: int = SOME_LINES) -> list[str]:
    """Only answers are wrapped: a reason may contain a command to be copied."""
    name = render_address(result)
    head = f"{state_of(result):<9} {result['job']}: {render_told(result)}"
    return [
        *(wrap_lines(head, width, answer_lines) if is_answer(result) else [printable(head)]),
        *render_denied(result, name, width),
        *render_work(result, width),
        *(INDENT + line for line in render_next(result, name)),
    ]


def render_head(result: Result) -> str:
    """`done      fix-lint: Fixed 3 lint errors.`, in one line."""
    denied = len(result.get("denied") or ())
    but = f"({count(denied, 'tool call')} denied) " if denied else ""
    return f"{state_of(result):<9} {result['job']}: {but}{' '.join(render_told(result).split())}"


def render_told(result: Result) -> str:
    """The answer of an agent, or the reason why there is none."""
    if is_answer(result):
        return (result["result"] or "").strip() or "(no answer)"
    why = render_reason(reason_from_json(result["reason"]))
    error = result.get("error") or ""
    return f"{why}: {error}" if error and error not in why else why


def wrap_lines(text: str, width: int, most: int) -> list[str]:
    """The first lines, none wider than `width`; `...` marks a cut."""
    lines: list[str] = []
    for part in filter(str.strip, text.expandtabs(4).split("\n")):
        if len(lines) > most:
            break
        lines += wrap(
            printable(part.rstrip()), width, initial_indent=INDENT if lines else "",
            subsequent_indent=INDENT, break_on_hyphens=False,
        )  # fmt: skip
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], clip_line(f"{lines[most - 1]} ...", width)]


def clip_line(line: str, width: int) -> str:
    line = printable(line)
    return line if len(line) <= width else line[: width - 3].rstrip() + "..."


def render_denied(result: Result, name: str, width: int) -> Iterator[str]:
    denied = result.get("denied") or []
    if not denied:
        return
    calls = "1 tool call was" if len(denied) == 1 else f"{len(denied)} tool calls were"
    but = "but " if result["state"] == "done" else ""
    shown = ", ".join(map(render_call, denied[:CALLS_SHOWN]))
    more = f" and {len(denied) - CALLS_SHOWN} more" if len(denied) > CALLS_SHOWN else ""
    text = printable(f"{but}{calls} denied: {shown}{more}")
    yield from wrap(
        text, width, initial_indent=INDENT, subsequent_indent=INDENT, break_on_hyphens=False
    )
    yield printable(INDENT + render_allow(denied, name))


def render_call(denied: Mapping[str, str]) -> str:
    return name_call(denied["tool"], denied["what"])


def render_allow(denied: Sequence[Mapping[str, str]], name: str) -> str:
    """A command that continues the session with these tools allowed."""
    rules = list(dict.fromkeys(one["allow"] for one in denied if one["allow"]))
    if not rules:
        return "allow its tools in the agent's own settings, or run with --skip-permissions"
    allowed = " ".join(f"--allow {quote(rule)}" for rule in rules[:RULES_SHOWN])
    return f"allow it: ramherd retry {name} {allowed}"


def render_work(result: Result, width: int) -> Iterator[str]:
    """The changes and the cost of a job: in one line if there is room."""
    parts = [part for part in (render_changes(result), render_spent(result)) if part]
    if len(INDENT) + len("; ".join(parts)) <= width:
        parts = ["; ".join(parts)] if parts else []
    yield from (printable(INDENT + part) for part in parts)
    if fallback := result.get("fallback"):
        yield printable(f"{INDENT}model: {render_reason(reason_from_json(fallback))}")
    if note := result.get("worktree_note"):
        yield printable(f"{INDENT}worktree: {note}")
    left_out = [one for one in result.get("left_out") or () if one["why"] != "ignored"]
    if left_out:
        yield printable(f"{INDENT}not committed: {render_left_out(left_out)}")


def render_left_out(paths: Sequence[Any]) -> str:
    named = list(map(describe_left_out, paths[:LEFT_OUT_SHOWN]))
    more = f" and {len(paths) - LEFT_OUT_SHOWN} more" if len(paths) > LEFT_OUT_SHOWN else ""
    return ", ".join(named) + more


def describe_left_out(entry: Any) -> str:
    return f"{entry['path']} ({entry['why']})" if isinstance(entry, Mapping) else str(entry)


def render_changes(result: Result) -> str:
    files = result.get("files_changed")
    if files is None:
        return f"on {result['branch']}" if result.get("branch") else ""
    if not files:
        return "no file changed"
    lines = f"+{result.get('lines_added') or 0} -{result.get('lines_removed') or 0}"
    return f"{count(files, 'file')} {lines} {render_place(result)}"


def render_place(result: Result) -> str:
    """Where its changes are."""
    into = result.get("merged_into")
    if result.get("branch"):
        return f"on {result['branch']}" + (f", merged into {into}" if into else "")
    return f"(merged into {into})" if into else "(dropped)"


def is_mergeable(result: Result) -> bool:
    has_changes = result.get("files_changed") and result.get("branch")
    return bool(has_changes and not result.get("merged_into"))


def render_spent(result: Result) -> str:
    """Empty for an agent that has not begun."""
    tokens = (result.get("tokens_in") or 0) + (result.get("tokens_out") or 0)
    if not tokens and not result.get("turns") and not result.get("cost_usd"):
        return ""
    parts = [
        count(result["turns"], "turn") if result.get("turns") else "",
        f"{render_number(tokens)} tokens" if tokens else "",
        render_cost(result) or "cost unknown",
    ]
    return ", ".join(filter(None, parts))


def render_number(number: int) -> str:
    if number < 10_000:
        return str(number)
    return f"{number / 1000:.0f}k" if number < 999_500 else f"{number / 1_000_000:.1f}M"


def render_next(result: Result, name: str) -> Iterator[str]:
    """Commands that the user may want to type."""
    if result["state"] == "done" or not result["runs"]:
        return
    is_over = result["state"] in ("failed", "cancelled")
    goes_on = f"; go on: ramherd attach {name}" if is_over and result.get("resume") else ""
    yield printable(f"see: ramherd logs {name}{goes_on}")


def render_more(results: Sequence[Result]) -> list[str]:
    """Where the rest is: the output of a command, or the answers of all agents."""
    ran = [result for result in results if result["runs"]]
    telling = sum(map(is_telling, results))
    if len(ran) < 2 or telling > MOST_LINES:
        return []
    if telling:
        return ["all results: ramherd results"]
    return [printable(f"output of a job: ramherd logs {render_address(ran[0])}")]


def render_footer(results: Sequence[Result], width: int = 80) -> list[str]:
    """Commands for the whole herd, with names that work when typed."""
    changed = [render_address(result) for result in results if is_mergeable(result)]
    lines: list[str] = []
    if changed:
        name = changed[0]
        lines += [f"review: ramherd diff {name}", f"take it: ramherd merge {name}"]
        if len("   ".join(lines)) <= width:
            lines = ["   ".join(lines)]
    if any(result.get("denied") for result in results):
        lines.append("to allow an agent all its tools: --skip-permissions")
    return [printable(line) for line in lines]


def render_total_cost(results: Sequence[Result]) -> str:
    """The cost of all agents that have begun; "" if there are none."""
    agents = [result for result in results if render_spent(result)]
    known = [result for result in agents if result.get("cost_usd") is not None]
    if not known:
        return "cost unknown" if agents else ""
    is_estimate = any(result.get("cost_is_estimate") for result in known)
    total = render_usd(sum(result["cost_usd"] for result in known), is_estimate=is_estimate)
    unknown = len(agents) - len(known)
    return f"{total} and {count(unknown, 'job')} of unknown cost" if unknown else total
