"""An agent whose MCP servers cannot be reached starts without them, and its run says so."""

from collections.abc import Sequence

from ramherd.core.reasons import Reason, Why


def explain_no_gateway(servers: Sequence[str]) -> Reason:
    return Reason(Why.NO_GATEWAY, servers=", ".join(servers))
