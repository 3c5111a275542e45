"""Servers that crash, hang or print nonsense; clients that vanish; a gateway that is killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys

import pytest

from integration.conftest import await_, ours
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
    """Its guard ends the servers, also one that ignores the end of its input and TERM. The next
    gateway has the same port, and clients initialise again.
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

    pids = play(begin())
    gateway.stop(signal.SIGKILL)
    await_(lambda: all(map(is_gone, pids)), "the servers are gone", 60.0)
    await_(lambda: not ours(), "the guard is gone", 60.0)
    gateway.start()

    assert gateway.address.port == port

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


def test_a_large_server_is_reported_once(gateway: RunningGateway) -> None:
    """As an event of the machine, and in the log of the gateway."""
    gateway.add("fake", share="shared", memory_limit="1GiB")
    gateway.start()
    client = gateway.client("fake")

    def events() -> list[str]:
        shown = subprocess.run(
            (sys.executable, "-m", "ramherd", "events", "--since", "1h"), env=gateway.env,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return [line for line in shown.stdout.splitlines() if "MCP server fake uses" in line]

    async def run() -> None:
        await client.initialize()
        await client.call("grow", bytes=220 << 20)
        await asyncio.to_thread(gateway.await_until, lambda: bool(events()))
        await client.call("grow", bytes=1 << 20)
        client.close()

    play(run())
    used = gateway.status("fake")["processes"][0]["used_bytes"]
    gateway.await_until(lambda: gateway.status("fake")["processes"][0]["used_bytes"] != used)
    printed = gateway.stop()

    assert len(events()) == 1
    assert "more than 200 MiB; its limit is 1 GiB" in events()[0]
    assert printed.count("MCP server fake uses") == 1


def test_a_second_gateway_is_refused(gateway: RunningGateway) -> None:
    """One line."""
    gateway.add("fake")
    gateway.start()

    second = subprocess.run(
        SERVE, env=gateway.env, capture_output=True, text=True, timeout=20, check=False
    )

    assert second.returncode == 3
    assert second.stderr.startswith("ramherd: the MCP gateway runs already")
