"""What Claude Code writes down of its subagents, where it tells no hook."""

from __future__ import annotations

import os

# The last line of a subagent that its user stopped with Escape; claude 2.1.197 calls no hook then.
INTERRUPTED = b'"text":"[Request interrupted by user'
TAIL_BYTES = 4096


def transcript_of(session_transcript: str, agent: str) -> str:
    """Beside that of its session."""
    base, _ = os.path.splitext(session_transcript)
    return f"{base}/subagents/agent-{os.path.basename(agent)}.jsonl"


def was_interrupted(path: str) -> bool:
    """One that is not there, or not understood, says nothing."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - TAIL_BYTES, 0))
            lines = file.read().splitlines()
    except OSError:
        return False
    return bool(lines) and INTERRUPTED in lines[-1]
