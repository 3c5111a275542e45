"""The names of agents: settings and jobs are checked against them."""

# Those that ramherd can drive, and those of which one process takes many prompts.
AGENTS = ("claude", "codex", "gemini", "opencode", "qwen", "cursor", "command")
WARM_AGENTS = ("claude",)
