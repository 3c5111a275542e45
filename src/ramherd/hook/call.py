"""One call of the hook: the event, the calling session, its settings and its slots."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ramherd.config.load import load_config, make_policy
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.decide.governor.subagent_slots import CLAUDE_CAP as CAP_NAME
from ramherd.hook.claude_process import read_tree_bytes
from ramherd.hook.messages import user_message
from ramherd.hook.subagent_sizes import DEFAULT_BYTES, estimate_bytes
from ramherd.measure.cgroups import read_trees
from ramherd.measure.machine import read_machine
from ramherd.store.ledger import Ledger
from ramherd.store.owner import session_owner
from ramherd.store.subagent_slots import SlotLimits, SubagentSlots

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ramherd.core.machine import Machine
    from ramherd.core.procid import ProcId

# Keys that a project's file may not set: opening a repository must not run its commands.
PERSONAL = ("on_subagent_stop",)
# The number of subagents that Claude Code runs in a session by default (2.1.325).
CLAUDE_CAP = 20


class Call:
    """`answer` is returned to Claude."""

    def __init__(self, event: dict[str, Any], session: ProcId) -> None:
        self.event, self.session = event, session
        self.kind = str(event.get("hook_event_name", ""))
        self.session_id = str(event.get("session_id", ""))
        self.cwd = str(event.get("cwd") or os.getcwd())
        self.project = os.environ.get("CLAUDE_PROJECT_DIR") or self.cwd
        self.runtime, self.state = str(runtime_dir()), str(state_dir())
        self.answer: dict[str, object] = {}
        self._texts: list[str] = []
        wrong: list[str] = []
        self.config = load_config(
            cwd=self.cwd, report=lambda error: wrong.append(str(error)), personal=PERSONAL
        )
        for problem in (*wrong, *self.config.warnings):
            self.report_once(problem)
        self._trees = read_trees()
        self.limits = SlotLimits(
            self.read_machine, make_policy(self.config),
            self.config["max_parallel_session"], self.config["max_parallel"], read_claude_cap(),
        )  # fmt: skip
        ledger = f"{self.runtime}/ledger.db"
        self.slots = SubagentSlots(Ledger(ledger, self.runtime, session_owner(session)))

    def text(self, key: str) -> str:
        return str(self.event.get(key) or "")

    def need_bytes(self) -> int:
        """The set size, else the learned size, else the default."""
        known = self.config["subagent_memory"] or estimate_bytes(self.state, self.project)
        return int(known or DEFAULT_BYTES)

    def read_machine(self, uses: Sequence[tuple[int, int]] = ()) -> Machine:
        """`uses` are the applications in the ledger: pid and used bytes of each."""
        return read_machine(self._trees, herds=uses)

    def measure(self, session: ProcId) -> int:
        return read_tree_bytes(session)

    def report_notices(self) -> None:
        """Reports repairs of the ledger."""
        for reason in self.slots.ledger.pop_notices():
            from ramherd.show.reasons import render_reason  # noqa: PLC0415 - seldom

            self.report_once(render_reason(reason))

    def report_once(self, text: str) -> None:
        """Shows the text to the user, once in a session."""
        from ramherd.hook.shown_messages import is_first  # noqa: PLC0415 - most calls report nothing

        if is_first(self.runtime, self.session_id, text, self.kind):
            self.report(text)

    def report(self, text: str) -> None:
        self._texts.append(text)
        self.answer.update(user_message("; ".join(self._texts)))


def read_claude_cap() -> int:
    """Claude puts the `env` of all its settings files into its own environment, which hooks
    inherit. As in Claude, any value but a number from 1 on is ignored.
    """
    text = os.environ.get(CAP_NAME, "").strip()
    return int(text) if text.isdecimal() and int(text) else CLAUDE_CAP
