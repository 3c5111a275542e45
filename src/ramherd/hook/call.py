"""One call of the hook: who called, in which project, under which settings."""

from __future__ import annotations

import os

from ramherd.exec.places import runtime_dir, state_dir
from ramherd.exec.room import BUDGET_SHARE
from ramherd.hook.caller import read_tree_bytes
from ramherd.hook.messages import tell_user
from ramherd.hook.room import is_below, read_sizes
from ramherd.hook.settings import SUBAGENT_MEMORY_BYTES, read_settings
from ramherd.hook.subagent_sizes import estimate_bytes
from ramherd.store.ledger import Ledger
from ramherd.store.owner import session_owner
from ramherd.store.subagent_rows import Room
from ramherd.store.subagent_slots import Seats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ramherd.core.procid import ProcId


class Call:
    """`said` is what Claude gets as the answer."""

    def __init__(self, event: dict[str, Any], session: ProcId) -> None:
        self.event, self.session = event, session
        self.kind = str(event.get("hook_event_name", ""))
        self.session_id = str(event.get("session_id", ""))
        self.cwd = str(event.get("cwd") or os.getcwd())
        self.project = os.environ.get("CLAUDE_PROJECT_DIR") or self.cwd
        self.settings = read_settings(self.cwd)
        self.runtime, self.state = runtime_dir(), state_dir()
        self.said: dict[str, object] = {}
        self._texts: list[str] = []
        path, owner = f"{self.runtime}/ledger.db", session_owner(session)
        self.seats = Seats(Ledger(path, self.runtime, owner, self.tell_once))
        for problem in self.settings.problems:
            self.tell_once(problem)

    def text(self, key: str) -> str:
        return str(self.event.get(key) or "")

    def need_bytes(self) -> int:
        """What was set, else what was learned, else the default."""
        known = self.settings.subagent_memory_bytes or estimate_bytes(self.state, self.project)
        return known or SUBAGENT_MEMORY_BYTES

    def room(self) -> Room:
        """As it is now."""
        settings = self.settings
        return Room(
            read_sizes(), BUDGET_SHARE, is_below, settings.budget_bytes,
            settings.max_parallel_session, settings.max_parallel,
        )  # fmt: skip

    def measure(self, session: ProcId) -> int:
        return read_tree_bytes(session)

    def tell_once(self, text: str) -> None:
        from ramherd.hook.notified import is_first  # noqa: PLC0415 - mostly there is nothing to say

        if is_first(self.runtime, self.session_id, text, self.kind):
            self.say(text)

    def say(self, text: str) -> None:
        self._texts.append(text)
        self.said.update(tell_user("; ".join(self._texts)))
