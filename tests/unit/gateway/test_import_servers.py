"""Servers of other programs become servers of the gateway."""

from ramherd.agents.configured_servers import OwnServer
from ramherd.gateway.import_servers import (
    CHANGED,
    NEW,
    REFUSED,
    SAME,
    TWIN,
    merge_servers,
)
from ramherd.gateway.render_import import render_import
from ramherd.store.mcp_servers import McpServer


def own(name: str, *command: str, agent: str = "claude", **more: str) -> OwnServer:
    return OwnServer(agent, f"/home/{agent}", name, command, **more)  # type: ignore[arg-type]


def test_new_servers_keep_their_names() -> None:
    """As far as a URL can have them."""
    servers, results = merge_servers({}, [own("time", "x"), own("my server!", "y")])

    assert servers["time"] == McpServer("time", ("x",), origin="claude")
    assert [one.name for one in results] == ["time", "my-server"]
    assert {one.result for one in results} == {NEW}


def test_the_same_server_of_two_programs_is_one() -> None:
    """Whatever each of them calls it."""
    found = [own("time", "x"), own("clock", "x", agent="codex"), own("time", "x", agent="gemini")]
    servers, results = merge_servers({}, found)

    assert list(servers) == ["time"]
    assert [one.result for one in results] == [NEW, TWIN, TWIN]


def test_different_servers_of_one_name_are_two() -> None:
    """The second has the name of its program; the third a number."""
    found = [own("a", "x"), own("a", "y", agent="codex"), own("a", "z", agent="codex")]
    servers, _results = merge_servers({}, found)

    assert {name: one.command for name, one in servers.items()} == {
        "a": ("x",), "a-codex": ("y",), "a-2": ("z",),
    }  # fmt: skip


def test_a_second_import_changes_nothing() -> None:
    """Also if only one program still has its server, because `enable` replaced the other's."""
    found = [own("a", "x"), own("a", "y", agent="codex")]
    servers, _results = merge_servers({}, found)

    again, results = merge_servers(servers, found)
    assert (again, {one.result for one in results}) == (servers, {SAME})
    again, results = merge_servers(servers, found[1:])
    assert (again, [one.name for one in results]) == (servers, ["a-codex"])


def test_a_changed_server_keeps_its_settings() -> None:
    """A share mode that the user has chosen stays; another program's server is not replaced."""
    known = {"a": McpServer("a", ("x",), share="serial", origin="claude")}
    servers, results = merge_servers(known, [own("a", "new")])

    assert servers["a"] == known["a"]._replace(command=("new",))
    assert results[0].result == CHANGED
    servers, _results = merge_servers(known, [own("a", "new", agent="codex")])
    assert list(servers) == ["a", "a-codex"]


def test_what_cannot_be_imported_is_listed() -> None:
    """With its reason. Links to the gateway itself are not listed."""
    link = own("time", url="http://127.0.0.1:20000/mcp/time", problem="runs elsewhere")
    found = [own("a", problem="has no command"), link]
    servers, results = merge_servers({}, found)

    assert servers == {}
    assert [(one.result, one.reason) for one in results] == [(REFUSED, "has no command")]


def test_no_secret_is_printed() -> None:
    """Neither arguments nor variables, as text or as JSON."""
    found = [own("a", "node", "--key=secret", env={"KEY": "secret"})]  # type: ignore[arg-type]
    _servers, results = merge_servers({}, found)
    text = "\n".join(render_import(results, ["x: broken"], is_dry_run=False))

    assert "secret" not in text + str([one.as_json() for one in results])
    assert "a: taken (claude, /home/claude)" in text
    assert "not read: x: broken" in text
