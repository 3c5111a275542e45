"""The multiplexer: every message reaches the client that it belongs to, and no other."""

from ramherd.gateway.protocol.jsonrpc import (
    CANCELLED,
    SERVER_FAILED,
    SUBSCRIPTION_ID,
    make_notification,
    make_request,
    make_result,
)
from ramherd.gateway.protocol.router import Router
from support.mcp.routed import Scene


def scene(*clients: str, **given: bool) -> Scene:
    made = Scene(Router(**given))
    made.join(*clients)
    return made


def test_equal_ids_of_two_clients_do_not_meet() -> None:
    """Each request has its own id at the server, and each response its client's."""
    s = scene("a", "b")
    one, two = s.ask("a", 1), s.ask("b", 1)

    s.serve(two, {"for": "b"})
    s.serve(one, {"for": "a"})

    assert s.got["a"] == [(1, make_result(1, {"for": "a"}))]
    assert s.got["b"] == [(1, make_result(1, {"for": "b"}))]


def test_equal_progress_tokens_do_not_meet() -> None:
    """Tokens are rewritten for the server and restored for the client; unknown ones are dropped."""
    s = scene("a", "b")
    one = s.ask("a", 1, _meta={"progressToken": "t", "x": 1})
    two = s.ask("b", 1, _meta={"progressToken": "t"})
    three = s.ask("b", 2)

    assert s.open[one]["params"]["_meta"] == {"progressToken": one, "x": 1}
    for token, value in ((two, 2), (one, 1), (three, 3), (99, 4)):
        s.say(make_notification("notifications/progress", {"progressToken": token, "p": value}))

    assert [m["params"] for _id, m in s.got["a"]] == [{"progressToken": "t", "p": 1}]
    assert [m["params"] for _id, m in s.got["b"]] == [{"progressToken": "t", "p": 2}]


def test_unknown_fields_pass_unchanged() -> None:
    """`_meta`, tasks, apps and fields of the future are the server's and the client's matter."""
    s = scene("a")
    params = {"name": "t", "task": {"ttl": 5}, "future": [1, {"x": None}], "_meta": {"k/v": [2]}}

    number = s.ask("a", "id-1", **params)
    s.serve(number, {"content": [], "_meta": {"ui": {"x": 1}}, "future": 1})

    assert s.open == {}
    assert s.to_server[0]["params"] == params
    assert s.got["a"][0][1]["result"] == {"content": [], "_meta": {"ui": {"x": 1}}, "future": 1}


def test_a_cancelled_call_is_cancelled_in_the_server() -> None:
    """With the server's id; the client's response ends, and a late answer is dropped."""
    s = scene("a", "b")
    one, two = s.ask("a", 7), s.ask("b", 7)

    s.tell("a", "notifications/cancelled", requestId=7, reason="late")
    s.serve(one, {"late": True})
    s.serve(two, {})

    cancelled = make_notification("notifications/cancelled", {"requestId": one, "reason": "late"})
    assert cancelled in s.to_server
    assert [m["error"]["code"] for _id, m in s.got["a"]] == [CANCELLED]
    assert s.got["b"] == [(7, make_result(7, {}))]


def test_a_client_cannot_cancel_the_call_of_another() -> None:
    """Ids are the client's own."""
    s = scene("a", "b")
    s.ask("a", 7)

    s.tell("b", "notifications/cancelled", requestId=7)

    assert len(s.to_server) == 1


def test_a_request_of_the_server_goes_to_the_client_whose_call_caused_it() -> None:
    """And the answer goes back with the server's own id."""
    s = scene("a", "b")
    s.ask("b", 1)

    s.say(make_request("s-1", "elicitation/create", {"message": "?"}))
    id_, question = s.got["b"][0]
    s.reply("a", make_result(question["id"], {"stolen": True}))
    s.reply("b", make_result(question["id"], {"action": "accept"}))

    assert id_ == 1
    assert question["params"] == {"message": "?"}
    assert s.got["a"] == []
    assert s.to_server[-1] == make_result("s-1", {"action": "accept"})
    assert len([m for m in s.to_server if m.get("id") == "s-1"]) == 1


def test_a_request_is_refused_if_two_clients_may_have_caused_it() -> None:
    """From then on calls are one at a time, so that the next one is certain."""
    s = scene("a", "b")
    one, two = s.ask("a", 1), s.ask("b", 1)

    s.say(make_request(5, "sampling/createMessage"))
    s.serve(one, {})
    s.serve(two, {})
    three, four = s.ask("a", 2), s.ask("b", 2)

    assert s.to_server[2]["id"] == 5
    assert "error" in s.to_server[2]
    assert list(s.open) == [three]
    s.say(make_request(6, "sampling/createMessage"))
    assert s.got["a"][-1][1]["method"] == "sampling/createMessage"
    s.serve(three, {})
    assert list(s.open) == [four]


def test_a_log_message_goes_to_its_caller_alone() -> None:
    """An ambiguous one is dropped: it may hold what another client may not see."""
    s = scene("a", "b", asks=False)
    one = s.ask("a", 1)
    log = make_notification("notifications/message", {"level": "info", "data": "secret of a"})

    s.say(log)
    s.ask("b", 1)
    s.serve(one, {})
    s.say(log)

    assert [m.get("method") for _id, m in s.got["a"]] == ["notifications/message", None]
    assert [m for _id, m in s.got["b"]] == [log]
    both = scene("a", "b")
    both.ask("a", 1)
    both.ask("b", 1)
    both.say(log)
    assert both.got == {"a": [], "b": []}


def test_each_client_has_its_own_log_level() -> None:
    """The server gets the most talkative one."""
    s = scene("a", "b")
    s.serve(s.ask("a", 1, "logging/setLevel", level="error"), {})
    s.serve(s.ask("b", 1, "logging/setLevel", level="debug"), {})
    s.serve(s.ask("a", 2, "logging/setLevel", level="warning"), {})
    s.got = {"a": [], "b": []}
    debug = make_notification("notifications/message", {"level": "debug", "data": 1})

    assert [m["params"]["level"] for m in s.to_server] == ["error", "debug", "debug"]
    one = s.ask("a", 3)
    s.say(debug)
    s.serve(one, {})
    s.ask("b", 3)
    s.say(debug)

    assert [m for _id, m in s.got["a"] if "method" in m] == []
    assert [m for _id, m in s.got["b"]] == [debug]


def test_subscriptions_are_counted() -> None:
    """The server sees the first subscription and the end of the last; updates go to subscribers."""
    s = scene("a", "b", "c")
    uri = "x://1"
    s.serve(s.ask("a", 1, "resources/subscribe", uri=uri), {})
    s.ask("b", 1, "resources/subscribe", uri=uri)
    update = make_notification("notifications/resources/updated", {"uri": uri})

    s.say(update)
    s.ask("a", 2, "resources/unsubscribe", uri=uri)
    s.say(update)
    s.apply(s.router.remove_session("b"))

    assert [m["method"] for m in s.to_server] == ["resources/subscribe", "resources/unsubscribe"]
    assert [m for _id, m in s.got["a"]].count(update) == 1
    assert [m for _id, m in s.got["b"]].count(update) == 2
    assert s.got["c"] == []


def test_a_new_process_gets_the_subscriptions_and_the_level_again() -> None:
    """Sessions go on after a crash."""
    s = scene("a", "b")
    s.serve(s.ask("a", 1, "resources/subscribe", uri="x://1"), {})
    s.serve(s.ask("b", 1, "logging/setLevel", level="notice"), {})
    s.apply(s.router.fail("it ended"))
    s.to_server.clear()

    s.apply(s.router.restart())

    asked = [(m["method"], m["params"]) for m in s.to_server]
    assert asked == [
        ("logging/setLevel", {"level": "notice"}), ("resources/subscribe", {"uri": "x://1"}),
    ]  # fmt: skip


def test_a_crash_fails_the_calls_that_the_server_has() -> None:
    """They are never sent again; a call that still waits is sent to the next process."""
    s = scene("a", "b", is_serial=True)
    one, two = s.ask("a", 1), s.ask("b", 1)

    s.apply(s.router.fail("it ended"))
    assert s.got["a"][0][1]["error"]["code"] == SERVER_FAILED
    assert s.got["b"] == []
    s.open.clear()
    s.apply(s.router.restart())
    s.serve(one, {"late": True})
    s.serve(two, {"ok": True})

    assert len(s.got["a"]) == 1
    assert s.got["b"] == [(1, make_result(1, {"ok": True}))]


def test_serial_calls_are_one_at_a_time_in_their_order() -> None:
    """Lists do not wait. A waiting call that is cancelled never reaches the server."""
    s = scene("a", "b", "c", is_serial=True)
    one, two, three = s.ask("a", 1), s.ask("b", 1), s.ask("c", 1)

    assert list(s.open) == [one]
    tools = s.ask("b", 2, "tools/list")
    assert list(s.open) == [one, tools]
    s.apply(s.router.cancel(two))
    s.serve(one, {})

    assert list(s.open) == [tools, three]
    assert two not in [m.get("id") for m in s.to_server]


def test_a_cancelled_call_keeps_its_turn_until_the_server_answers() -> None:
    """A write that goes on in the server must not meet the next one."""
    s = scene("a", "b", is_serial=True)
    one, two = s.ask("a", 1), s.ask("b", 1)

    s.apply(s.router.cancel(one))
    assert two not in s.open
    s.apply(s.router.release(one))

    assert two in s.open


def test_a_task_belongs_to_its_client() -> None:
    """Other clients do not see it."""
    s = scene("a", "b")
    s.serve(s.ask("a", 1, task={}), {"task": {"taskId": "t1", "status": "working"}})

    s.ask("b", 1, "tasks/get", taskId="t1")
    mine = s.ask("a", 2, "tasks/get", taskId="t1")
    listed = s.ask("b", 2, "tasks/list")
    s.serve(listed, {"tasks": [{"taskId": "t1"}]})

    assert mine in s.open
    assert s.got["b"][0][1]["error"]["message"] == "no such task"
    assert s.got["b"][1][1]["result"] == {"tasks": []}


def test_the_subscription_id_of_each_listener_is_its_own() -> None:
    """In the newer era it is the id of the client's request, in every frame and in the result."""
    s = scene(is_modern=True)
    s.got = {"x": [], "y": []}
    one, two = s.ask("x", 5, "subscriptions/listen"), s.ask("y", 5, "subscriptions/listen")
    changed = "notifications/tools/list_changed"

    s.say(make_notification(changed, {"_meta": {SUBSCRIPTION_ID: two, "k": 1}}))
    s.serve(one, {"_meta": {SUBSCRIPTION_ID: one}})

    assert s.got["y"] == [(5, make_notification(changed, {"_meta": {SUBSCRIPTION_ID: 5, "k": 1}}))]
    assert s.got["x"] == [(5, make_result(5, {"_meta": {SUBSCRIPTION_ID: 5}}))]


def test_in_the_newer_era_logs_go_to_the_request_that_asked_for_them() -> None:
    """Two that asked are ambiguous."""
    s = scene(is_modern=True)
    s.got = {"x": [], "y": [], "z": []}
    level = {"io.modelcontextprotocol/logLevel": "info"}
    log = make_notification("notifications/message", {"level": "info", "data": 1})
    s.ask("x", 1)
    s.ask("y", 1, _meta=level)

    s.say(log)
    s.ask("z", 1, _meta=level)
    s.say(log)

    assert s.got == {"x": [], "y": [(1, log)], "z": []}


def test_a_session_that_ends_leaves_nothing_behind() -> None:
    """Its calls are cancelled, and the server gets an error for what it asked."""
    s = scene("a", "b")
    one = s.ask("a", 1)
    s.say(make_request("s", "roots/list"))

    s.apply(s.router.remove_session("a"))

    assert [m.get("method") for m in s.to_server[1:]] == ["notifications/cancelled", None]
    assert s.to_server[-1]["error"]["message"] == "the client has gone"
    s.apply(s.router.release(one))
    assert not s.router.calls
    assert not s.router.asked
    assert not s.router.is_busy
