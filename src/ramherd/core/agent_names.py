"""The names of agents: settings and jobs are checked against them."""

# Agents that ramherd can run, and agents of which one process takes many prompts.
AGENTS = ("claude", "codex", "gemini", "opencode", "qwen", "cursor", "command")
WARM_AGENTS = ("claude",)
