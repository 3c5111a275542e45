"""What `ramherd mcp list` and `status` print."""

from typing import Any

from ramherd.core.units import MIB
from ramherd.gateway.render_status import make_rows, render_list, render_status
from ramherd.gateway.usage import add_usage

NOW_S = 100 * 86_400.0
GATEWAY = {"pid": 7, "port": 20000, "rss_bytes": 30 * MIB, "sessions": 3}


def server(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "share": "shared", "reason": "calls keep no state", "state": "idle",
        "clients": 0, "used_bytes": 0, "calls": 0, "last_used_at_s": None, **more,
    }  # fmt: skip


def test_each_server_with_its_reason() -> None:
    """The reason is wrapped, never cut."""
    reason = "a reason of many words " * 5
    lines = render_list(make_rows([server("time"), server("x", reason=reason)], NOW_S), 60)

    assert lines[0] == "time  shared  calls keep no state"
    assert lines[1].startswith("x     shared  a reason")
    assert max(map(len, lines)) <= 60
    assert " ".join(" ".join(lines[1:]).split()[2:]) == reason.strip()


def test_what_sharing_saves() -> None:
    """A process with four clients saves three copies."""
    process = {"clients": 4, "used_bytes": 50 * MIB}
    row = server(
        "time", state="running", clients=4, used_bytes=50 * MIB, calls=9, processes=[process],
        last_used_at_s=NOW_S - 3,
    )  # fmt: skip
    assert render_status(GATEWAY, make_rows([row], NOW_S), 80, NOW_S) == [
        "gateway: pid 7, 127.0.0.1:20000, 30 MiB, 3 sessions",
        "SERVER  SHARE   STATE    CLIENTS  MEMORY  CALLS  LAST USE",
        "time    shared  running        4  50 MiB      9  3s ago",
        "sharing saves 150 MiB: 3 copies of servers did not start",
    ]


def test_a_server_that_nobody_uses_is_marked() -> None:
    """After 14 days, counted from its import if it was never used."""
    day_s = 86_400.0
    rows = make_rows(
        [
            server("old", known_at_s=0.0, last_used_at_s=NOW_S - 14 * day_s),
            server("new", known_at_s=NOW_S - 13 * day_s),
            server("used", known_at_s=0.0, last_used_at_s=NOW_S - 13 * day_s),
            server("unknown"),
        ],
        NOW_S,
    )
    assert [row.name for row in rows if row.is_unused] == ["old"]
    assert "  not used for 14 days (hint: ramherd mcp remove old)" in render_list(rows, 80)


def test_without_a_gateway() -> None:
    """Nothing is wrong: it starts when it is needed."""
    lines = render_status(None, [], 80, NOW_S)
    assert lines == [
        "the gateway does not run: the first agent that needs it starts it",
        "no MCP servers are known (hint: ramherd mcp import)",
    ]


def test_usage_adds_up_over_restarts() -> None:
    """Calls are counted on; a server that is gone is forgotten."""
    first = add_usage({}, ["a", "b"], {"a": (2, 50.0)}, 100.0)
    second = add_usage(first, ["a"], {"a": (1, 150.0)}, 200.0)

    assert second == {"a": {"calls": 3, "last_used_at_s": 150.0, "known_at_s": 100.0}}
    assert first["b"] == {"calls": 0, "last_used_at_s": None, "known_at_s": 100.0}
