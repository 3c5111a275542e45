"""What the adapters of real CLIs have in common, unless they say otherwise."""

import signal

from ramherd.agents import Warm
from ramherd.agents.find_program import Program, Source, find_program
from ramherd.agents.session_ids import new_uuid


class Cli:
    source: Source
    # INT writes into claude's history that the user wants it to stop.
    stop_signal = signal.SIGTERM
    resumes = True
    reports_cost = False
    holds_to_cost = False
    # gemini ends with 0 after TERM, and not only gemini after it gave up.
    needs_result = True
    # Else the CLI does, and says so in an event.
    names_sessions = False
    warm: Warm | None = None

    def find(self, path: str, program: str = "") -> Program:
        return find_program(self.source, path, program)

    def new_session(self) -> str:
        return new_uuid() if self.names_sessions else ""
