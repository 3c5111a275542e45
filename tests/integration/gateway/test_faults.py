"""Servers that crash, hang or print nonsense; clients that vanish; a gateway that is killed."""

import asyncio
import json
import os
import signal
import subprocess
import time

import pytest

from integration.gateway.conftest import SERVE, RunningGateway, play, text_of
from ramherd.system.procfs import read_process, read_rss_bytes
from support.mcp.http_client import request


def is_gone(pid: int) -> bool:
    found = read_process(pid)
    return found is None or not found.is_alive


def test_a_server_killed_during_a_call(gateway: RunningGateway) -> None:
    """The call gets an error at once and is never repeated; the session goes on."""
    gateway.add("fake", share="shared")
    gateway.start()
    client = gateway.client("fake")

    async def run() -> None:
        await client.initialize()
        pid = text_of(await client.call("pid"))
        call = asyncio.create_task(client.call("slow", text="once", seconds=30))
        await asyncio.to_thread(gateway.await_until, lambda: "call slow once" in gateway.notes())
        os.kill(pid, signal.SIGKILL)
        answer = await call
        assert answer["error"]["message"] == "MCP server fake: it ended with signal 9"
        assert text_of(await client.call("pid")) != pid
        client.close()

    play(run())
    assert gateway.notes().count("call slow once") == 1


def test_a_server_that_dies_at_every_call_backs_off(gateway: RunningGateway) -> None:
    """Later calls fail at once, with the time of the next start."""
    gateway.add("fake", share="shared")
    gateway.start()
    client = gateway.client("fake")

    async def run() -> str:
        await client.initialize()
        for _ in range(8):
            answer = await client.call("die")
            if "starts again in" in answer["error"]["message"]:
                break
        client.close()
        return str(answer["error"]["message"])

    message = play(run())

    assert "it ended with exit status 7" in message
    assert gateway.status("fake")["state"] == "back-off"


def test_a_program_that_does_not_exist(gateway: RunningGateway) -> None:
    """One clear line, and no crash."""
    gateway.add("fake", share="shared", command=["/no/such/program"])
    gateway.start()
    client = gateway.client("fake")

    async def run() -> str:
        answer = await client.initialize()
        client.close()
        return str(answer["error"]["message"])

    message = play(run())

    assert "cannot start /no/such/program: No such file" in message


def test_a_server_that_hangs_can_be_given_up(gateway: RunningGateway) -> None:
    """Others go on meanwhile; the call is cancelled in the server when its client has gone."""
    gateway.add("fake", share="serial")
    gateway.start()
    one, two = gateway.client("fake"), gateway.client("fake")

    async def run() -> None:
        await one.initialize()
        await two.initialize()
        params = {"name": "hang", "arguments": {"text": "x"}}
        await one.write("POST", json.dumps(request(9, "tools/call", params)).encode())
        await asyncio.to_thread(gateway.await_until, lambda: "call hang x" in gateway.notes())
        waiting = asyncio.create_task(two.call("echo", text="next"))
        one.abort()
        assert text_of(await waiting) == "next"
        two.close()

    play(run())
    assert [line for line in gateway.notes() if line.startswith("cancelled ")]


@pytest.mark.parametrize("tool", ["garbage", "flood"])
def test_a_server_that_prints_nonsense(gateway: RunningGateway, tool: str) -> None:
    """A little is skipped. Too much ends the server, and the gateway stays small."""
    gateway.add("fake", share="shared")
    address = gateway.start()
    client = gateway.client("fake")

    async def run() -> None:
        await client.initialize()
        assert "result" in await client.call("garbage", lines=5)
        much = {"lines": 200_000} if tool == "garbage" else {"bytes": 1 << 30}
        answer = await client.call(tool, **much)
        assert "it printed" in answer["error"]["message"]
        assert text_of(await client.call("echo", text="again")) == "again"
        client.close()

    play(run())
    assert read_rss_bytes(address.proc.pid) < 100 << 20


def test_a_client_that_disconnects_cancels_its_call(gateway: RunningGateway) -> None:
    """In the server, with the server's id."""
    gateway.add("fake", share="shared")
    gateway.start()
    client = gateway.client("fake")

    async def run() -> None:
        await client.initialize()
        params = {"name": "slow", "arguments": {"text": "y", "seconds": 30}}
        await client.write("POST", json.dumps(request(9, "tools/call", params)).encode())
        await asyncio.to_thread(gateway.await_until, lambda: "call slow y" in gateway.notes())
        client.abort()

    play(run())
    gateway.await_until(lambda: any(line.startswith("cancelled ") for line in gateway.notes()))


def test_a_killed_gateway_leaves_no_server(gateway: RunningGateway) -> None:
    """Polite servers end with it. What stays is ended by the next gateway, which has the same port,
    and whose clients initialise again.
    """
    gateway.add("fake", share="shared")
    gateway.add("deaf", share="shared", env={"FAKE_DEAF": "1"})
    port = gateway.start().port
    clients = [gateway.client("fake"), gateway.client("deaf")]

    async def begin() -> list[int]:
        pids = []
        for client in clients:
            await client.initialize()
            pids.append(text_of(await client.call("pid")))
        for client in clients:
            client.close()
        return pids

    polite, deaf = play(begin())
    gateway.stop(signal.SIGKILL)
    deadline_s = time.monotonic() + 10
    while not is_gone(polite) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert is_gone(polite)
    gateway.start()

    assert gateway.address.port == port
    assert is_gone(deaf)

    async def go_on() -> None:
        client = gateway.client("fake")
        client.session = clients[0].session
        assert (await client.post(request(1, "tools/list"))).status == 404
        await client.initialize()
        assert text_of(await client.call("echo", text="here")) == "here"
        client.close()

    play(go_on())


def test_a_server_at_its_memory_limit(gateway: RunningGateway) -> None:
    """Only that server ends, and the error says why."""
    gateway.add("fake", share="shared", memory_limit="64MiB")
    gateway.start()
    client = gateway.client("fake")

    async def run() -> str:
        await client.initialize()
        answer = await client.call("grow", bytes=256 << 20)
        client.close()
        return str(answer.get("error", answer))

    assert "limit" in play(run())


def test_a_second_gateway_is_refused(gateway: RunningGateway) -> None:
    """One line."""
    gateway.add("fake")
    gateway.start()

    second = subprocess.run(
        SERVE, env=gateway.env, capture_output=True, text=True, timeout=20, check=False
    )

    assert second.returncode == 3
    assert second.stderr.startswith("ramherd: the MCP gateway runs already")
