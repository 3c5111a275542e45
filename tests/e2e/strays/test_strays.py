"""What killed agents leave, with the real ones: all of it is ended, and nothing of a twin's."""

from pathlib import Path

import pytest

from e2e.zoo.namespace import in_namespace
from e2e.zoo.place import has_node

PROGRAM = str(Path(__file__).parent / "left_behind.py")
# codex and gemini run below a wrapper, which a user may kill alone.
DEATHS = (
    ("claude", "outer"), ("codex", "outer"), ("codex", "all"), ("gemini", "outer"),
    ("gemini", "all"), ("opencode", "outer"),
)  # fmt: skip

WRAPPED = ("codex", "gemini")


@pytest.mark.parametrize(("agent", "mode"), DEATHS)
def test_reap_ends_what_a_killed_agent_left(installed: None, agent: str, mode: str) -> None:
    """Three MCP servers, of which one ignores the end of its stdin, and a tool call under way
    (which codex takes with it when it dies itself).
    """
    if not has_node():
        pytest.skip("no MCP servers from npm: make zoo-tools")

    told = in_namespace(PROGRAM, agent, mode)

    assert "node" in told["left"]
    if mode == "all" or agent not in WRAPPED or told["survivors"] == []:
        assert told["survivors"] == []
    else:
        # The agent itself may live on without its wrapper: it is spared while it works, and so is
        # what it owns.
        assert set(told["spared"]) <= {"busy", "connected", "in_tree", "owner"}
    assert told["touched"] == []
    assert told["live"] >= 5
