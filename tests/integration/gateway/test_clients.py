"""Many clients, one server: what the conformance suite does not see."""

import asyncio
import json
import os
from typing import Any

from integration.gateway.conftest import RunningGateway, play, text_of
from ramherd.system.procfs import read_cmdline
from support.mcp.http_client import McpHttp, request

CLIENTS = 10


async def talk(client: McpHttp, id_: Any, tool: str, text: str) -> list[dict[str, Any]]:
    """One call with the token and id that all clients use; answers what the server asks."""
    params = {"name": tool, "arguments": {"text": text}, "_meta": {"progressToken": 1}}
    await client.write("POST", json.dumps(request(id_, "tools/call", params)).encode())
    _status, headers = await client.read_head()
    if headers["content-type"] == "application/json":
        assert client._reader is not None
        data = await client._reader.readexactly(int(headers["content-length"]))
        return [json.loads(data)]
    messages = []
    async for message in client.read_events():
        messages.append(message)
        if "method" in message and "id" in message:
            other = McpHttp(client.port, "fake", client.token)
            other.path, other.session = client.path, client.session
            result = {"by": text, "asked": message["params"]}
            await other.post({"jsonrpc": "2.0", "id": message["id"], "result": result})
            other.close()
    return messages


def test_ten_clients_with_equal_ids_get_their_own_messages(gateway: RunningGateway) -> None:
    """Calls, progress, elicitation, sampling and logs at the same time, through one process."""
    gateway.add("fake", share="serial")
    gateway.start()

    async def run_one(number: int) -> None:
        name = f"client {number}"
        client = gateway.client("fake")
        await client.initialize({"elicitation": {}, "sampling": {}})
        for tool in ("echo", "progress", "ask", "sample", "log"):
            *before, last = await talk(client, 5, tool, name)
            assert last["id"] == 5
            said = text_of(last)
            assert (said["by"] if tool in ("ask", "sample") else said) == name
            if tool == "progress":
                tokens = [m["params"]["progressToken"] for m in before]
                assert tokens == [1, 1, 1]
                assert {m["params"]["message"] for m in before} == {name}
            if tool == "log":
                assert [m["params"]["data"] for m in before] == [name]
        client.close()

    async def run_all() -> None:
        await asyncio.gather(*(run_one(number) for number in range(CLIENTS)))

    play(run_all())

    assert len(gateway.starts()) == 1


def test_a_hundred_writes_of_ten_clients_are_kept(gateway: RunningGateway) -> None:
    """A serial server gets one call at a time, so a careless store loses nothing."""
    store = gateway.runtime / "store"
    gateway.add("fake", share="serial", env={"FAKE_STORE": str(store)})
    gateway.start()

    async def write(number: int) -> None:
        client = gateway.client("fake")
        await client.initialize()
        for line in range(10):
            text_of(await client.call("add", text=f"{number}-{line}"))
        client.close()

    async def run_all() -> None:
        await asyncio.gather(*(write(number) for number in range(10)))

    play(run_all())

    assert len(set(store.read_text().splitlines())) == 100


def test_an_agent_that_only_lists_tools_starts_no_server(gateway: RunningGateway) -> None:
    """From the second time on; the first real call starts one, however many call at once."""
    gateway.add("fake", share="shared")
    gateway.start()

    async def list_tools() -> list[str]:
        client = gateway.client("fake")
        await client.initialize()
        tools = (await client.ask("tools/list"))["result"]["tools"]
        client.close()
        return [tool["name"] for tool in tools]

    names = play(list_tools())
    gateway.stop()
    gateway.start()
    again = play(list_tools())
    assert again == names
    assert len(gateway.starts()) == 1

    async def call_at_once() -> list[int]:
        clients = [gateway.client("fake") for _ in range(10)]
        for client in clients:
            await client.initialize()
        found = await asyncio.gather(*(client.call("pid") for client in clients))
        for client in clients:
            client.close()
        return [text_of(one) for one in found]

    assert len(set(play(call_at_once()))) == 1
    assert len(gateway.starts()) == 2


def test_share_modes_decide_who_shares(gateway: RunningGateway) -> None:
    """Per agent: a process for each token. Other capabilities: another process."""
    gateway.add("own", share="per-agent")
    gateway.add("all", share="shared")
    gateway.start()
    tokens = [gateway.register("*") for _ in range(2)]

    async def pid(server: str, token: str, capabilities: dict[str, Any]) -> int:
        client = gateway.client(server, token)
        await client.initialize(capabilities)
        found = text_of(await client.call("pid"))
        client.close()
        assert isinstance(found, int)
        return found

    async def run() -> None:
        assert await pid("own", tokens[0], {}) != await pid("own", tokens[1], {})
        assert await pid("all", tokens[0], {}) == await pid("all", tokens[1], {})
        assert await pid("all", tokens[0], {"roots": {}}) != await pid("all", tokens[1], {})

    play(run())


def test_a_token_opens_its_own_servers_only(gateway: RunningGateway) -> None:
    """No or a wrong token, a foreign Host, a web page, a server of another profile."""
    gateway.add("mine", share="shared")
    gateway.add("other", share="shared")
    gateway.start()
    token = gateway.register("mine")

    async def status(server: str, token: str, host: str = "", **headers: str) -> int:
        client = McpHttp(gateway.address.port, server, token, host)
        answer = await client.post(request(1, "ping"), **headers)
        client.close()
        return answer.status

    async def run() -> None:
        assert await status("mine", "") == 401
        assert await status("mine", token + "x") == 401
        assert await status("mine", token, "evil.example") == 403
        assert await status("mine", token, origin="https://evil.example") == 403
        assert await status("other", token) == 404
        assert await status("none", token) == 404
        assert await status("mine", token) == 400  # no session

    play(run())
    assert gateway.starts() == []


def test_sessions_belong_to_their_token_and_end_with_it(gateway: RunningGateway) -> None:
    """Another token, or a token whose run has ended, gets 404 or 401; the process of an agent that
    has ended is gone too.
    """
    gateway.add("fake", share="per-agent")
    gateway.start()
    token, other = gateway.register("fake"), gateway.register("fake")
    client, thief = gateway.client("fake", token), gateway.client("fake", other)

    async def run() -> None:
        await client.initialize()
        await client.call("echo")
        thief.session = client.session
        assert (await thief.post(request(1, "tools/list"))).status == 404
        gateway.drop(token)
        while (await client.post(request(2, "tools/list"))).status != 401:
            await asyncio.sleep(0.1)
        client.close()
        thief.close()

    play(run())
    pid = gateway.starts()[0]
    gateway.await_until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_a_session_that_is_gone_gets_404(gateway: RunningGateway) -> None:
    """Then a client initialises again; DELETE ends a session."""
    gateway.add("fake", share="shared")
    gateway.start()
    client = gateway.client("fake")

    async def run() -> None:
        await client.initialize()
        assert (await client.send("DELETE")).status == 204
        assert (await client.post(request(1, "tools/list"))).status == 404
        await client.initialize()
        assert "result" in await client.ask("tools/list")
        client.close()

    play(run())


def test_updates_go_to_the_stream_of_the_subscriber(gateway: RunningGateway) -> None:
    """A session's own stream gets what belongs to no request."""
    gateway.add("fake", share="shared")
    gateway.start()
    one, two, caller = (gateway.client("fake") for _ in range(3))
    streams = [gateway.client("fake"), gateway.client("fake")]

    async def run() -> None:
        for client in (one, two, caller):
            await client.initialize()
        for client, stream in zip((one, two), streams, strict=True):
            stream.session = client.session
            await stream.write("GET")
            await stream.read_head()
        await one.ask("resources/subscribe", {"uri": "x://1"})
        await two.ask("resources/subscribe", {"uri": "x://2"})
        await caller.call("update", text="x://2")
        await caller.call("update", text="x://1")
        for stream, uri in zip(streams, ("x://1", "x://2"), strict=True):
            message = await anext(stream.read_events())
            assert message["params"] == {"uri": uri}
        for client in (one, two, caller, *streams):
            client.close()

    play(run())
    assert [line for line in gateway.notes() if "subscribe" in line] == [
        "resources/subscribe x://1", "resources/subscribe x://2",
    ]  # fmt: skip


def test_no_token_is_in_any_command_line(gateway: RunningGateway) -> None:
    """Every user of the machine can read those."""
    gateway.add("fake", share="shared")
    gateway.start()
    client = gateway.client("fake")

    async def run() -> None:
        await client.initialize()
        await client.call("echo")
        client.close()

    play(run())
    lines = [read_cmdline(int(pid)) or () for pid in os.listdir("/proc") if pid.isdigit()]
    assert not any(gateway.token in word for line in lines for word in line)


def test_an_idle_server_is_stopped_and_started_again(gateway: RunningGateway) -> None:
    """The session does not notice."""
    gateway.add("fake", share="shared", idle="1s")
    gateway.start()
    client = gateway.client("fake")

    async def run() -> None:
        await client.initialize()
        first = text_of(await client.call("pid"))
        await asyncio.to_thread(gateway.await_until, lambda: not os.path.exists(f"/proc/{first}"))
        assert text_of(await client.call("pid")) != first
        client.close()

    play(run())
    assert "not used for" in gateway.stop()
