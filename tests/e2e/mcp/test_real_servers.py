"""Real servers behind the gateway."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from integration.gateway.conftest import RunningGateway, gateway, play  # noqa: F401
from support.mcp.tools import REAL_SERVERS, require_tools

CLIENTS = 10


@pytest.fixture
def real_gateway(gateway: RunningGateway, tmp_path: Path) -> RunningGateway:  # noqa: F811
    require_tools()
    for name, (command, mode) in REAL_SERVERS.items():
        env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
        gateway.add(name, command=list(command), share=mode, env=env)
    gateway.start()
    return gateway


def test_clients_share_one_process_of_each_server(real_gateway: RunningGateway) -> None:
    """Ten clients list the tools of five servers, and have one process of each."""

    async def list_tools(server: str) -> None:
        client = real_gateway.client(server)
        await client.initialize()
        answer = await client.ask("tools/list")
        assert answer["result"]["tools"], answer
        client.close()

    async def run_all() -> None:
        names = [name for name in REAL_SERVERS for _ in range(CLIENTS)]
        await asyncio.gather(*(list_tools(name) for name in names))

    play(run_all())
    for name in REAL_SERVERS:
        assert len(real_gateway.status(name)["processes"]) == 1


def test_no_write_to_server_memory_is_lost(real_gateway: RunningGateway, tmp_path: Path) -> None:
    """100 writes by 10 clients; with concurrent calls 16 remain, and nobody reports an error."""

    async def write(number: int) -> None:
        client = real_gateway.client("memory")
        await client.initialize()
        for line in range(10):
            entity: dict[str, Any] = {"entityType": "x", "observations": []}
            answer = await client.call(
                "create_entities", entities=[{"name": f"{number}-{line}", **entity}]
            )
            assert "result" in answer
        client.close()

    async def run_all() -> None:
        await asyncio.gather(*(write(number) for number in range(CLIENTS)))

    play(run_all())
    stored = (tmp_path / "memory.json").read_text().splitlines()
    assert len({json.loads(line)["name"] for line in stored}) == 100
