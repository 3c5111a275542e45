"""Claude Code's transcripts of its subagents, for events that it reports to no hook."""

from __future__ import annotations

import json
import os

# In the last line of a subagent that its user stopped with Escape, or that ended with an API error.
# No hook is called for the first (claude 2.1.197, 2.1.325); for the second, if it is in the
# background, only StopFailure, for which claude before 2.1.78 reportedly ignores the settings.
ENDS = (b'"text":"[Request interrupted by user', b'"isApiErrorMessage":true')
TAIL_BYTES = 4096
META = ".meta.json"


def transcript_of(session_transcript: str, agent: str) -> str:
    """The path of the subagent's transcript, next to that of its session."""
    return f"{folder_of(session_transcript)}/agent-{os.path.basename(agent)}.jsonl"


def folder_of(session_transcript: str) -> str:
    base, _ = os.path.splitext(session_transcript)
    return f"{base}/subagents"


def was_cut_short(path: str) -> bool:
    """False if the transcript is missing or not understood."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - TAIL_BYTES, 0))
            lines = file.read().splitlines()
    except OSError:
        return False
    return bool(lines) and any(end in lines[-1] for end in ENDS)


def find_agent_of(session_transcript: str, call: str) -> str:
    """The subagent that this tool call started, if any."""
    folder = folder_of(session_transcript)
    try:
        names = [name for name in os.listdir(folder) if name.endswith(META)]
    except OSError:
        return ""
    for name in names:
        if call and read_call(f"{folder}/{name}") == call:
            return name.removeprefix("agent-").removesuffix(META)
    return ""


def read_call(path: str) -> str:
    try:
        with open(path, "rb") as file:
            meta = json.load(file)
    except (OSError, ValueError):
        return ""
    return str(meta.get("toolUseId") or "") if isinstance(meta, dict) else ""
