"""`python -m ramherd.hook`: the hook that Claude Code calls for its own subagents.

The user of Claude waits for every call, so modules are imported where they are needed, and none of
those imports dataclasses (tests/bench/hook_time.py has the limit). A hook that fails must not stop
Claude.
"""
