"""The names of the supported agents. Settings and jobs are checked against this list."""

# Agents that ramherd can run, and agents whose process can serve many prompts.
AGENTS = ("claude", "codex", "gemini", "opencode", "qwen", "cursor", "command")
WARM_AGENTS = ("claude",)
# Agents that can be given MCP servers for one run: cursor reads them only from its own files.
MCP_AGENTS = ("claude", "codex", "gemini", "opencode", "qwen")
