"""Ten clients with equal ids and tokens, a server that asks, logs and reports progress, in any
order: every message reaches its own client.
"""

from random import Random
from typing import Any

import pytest

from ramherd.gateway.protocol.jsonrpc import make_notification, make_request, make_result
from ramherd.gateway.protocol.router import Router
from support.mcp.routed import Scene

CLIENTS = [f"client-{number}" for number in range(10)]
STEPS = 60


class RandomServer:
    """Answers, asks, logs and reports for one of its open calls at a time. A call has its client's
    name in its parameters, and whatever the server sends for it has that name too.
    """

    def __init__(self, scene: Scene, random: Random) -> None:
        self._scene, self._random = scene, random
        self._last_id = 0
        self.asked: dict[int, str] = {}
        self.answered: list[tuple[str, str]] = []
        self.refused = 0

    def step(self) -> None:
        """Requests that the gateway has answered are read first."""
        calls = {n: m for n, m in self._scene.open.items() if m["method"] == "tools/call"}
        if not calls:
            return
        number = self._random.choice(sorted(calls))
        client = calls[number]["params"]["client"]
        act = self._random.choice(
            [self._answer, self._answer, self._progress, self._log, self._ask]
        )
        act(number, client)

    def _answer(self, number: int, client: str) -> None:
        if client not in self.asked.values():
            self._scene.serve(number, {"client": client})

    def _progress(self, number: int, client: str) -> None:
        params = {"progressToken": number, "client": client}
        self._scene.say(make_notification("notifications/progress", params))

    def _log(self, _number: int, client: str) -> None:
        params = {"level": "info", "client": client}
        self._scene.say(make_notification("notifications/message", params))

    def _ask(self, _number: int, client: str) -> None:
        self._last_id += 1
        self.asked[self._last_id] = client
        method = self._random.choice(["elicitation/create", "sampling/createMessage"])
        self._scene.say(make_request(self._last_id, method, {"client": client}))

    def read(self) -> None:
        for message in self._scene.to_server:
            id_ = message.get("id")
            if "method" in message or id_ not in self.asked:
                continue
            client = self.asked.pop(id_)
            if "error" in message:
                self.refused += 1
            else:
                self.answered.append((client, message["result"]["client"]))
        self._scene.to_server.clear()


def play(seed: int) -> tuple[Scene, RandomServer]:
    random = Random(seed)
    scene = Scene(Router(is_serial=random.random() < 0.3, asks=random.random() < 0.3))
    scene.join(*CLIENTS)
    server = RandomServer(scene, random)
    next_id = dict.fromkeys(CLIENTS, 0)
    for _step in range(STEPS):
        client = random.choice(CLIENTS)
        roll = random.random()
        if roll < 0.4:
            next_id[client] += 1
            id_ = next_id[client]
            scene.ask(client, id_, client=client, _meta={"progressToken": id_})
        elif roll < 0.45 and next_id[client]:
            scene.tell(
                client, "notifications/cancelled", requestId=random.randint(1, next_id[client])
            )
        elif roll < 0.6:
            answer_questions(scene, client)
        else:
            server.step()
        server.read()
    return scene, server


def answer_questions(scene: Scene, client: str) -> None:
    for _id, message in scene.got[client]:
        if "method" in message and "id" in message:
            scene.reply(client, make_result(message["id"], {"client": client}))


def owner_of(message: dict[str, Any]) -> str | None:
    part = message.get("params") or message.get("result") or {}
    found: str | None = part.get("client")
    return found


@pytest.mark.parametrize("block", range(10))
def test_every_message_reaches_its_own_client(block: int) -> None:
    """1,000 random orders; questions are refused only where two clients may have caused them."""
    delivered = asked = 0
    for seed in range(block * 100, block * 100 + 100):
        scene, server = play(seed)
        for client, messages in scene.got.items():
            for id_, message in messages:
                owner = owner_of(message)
                assert owner in (None, client), (seed, client, message)
                if message.get("method") == "notifications/progress":
                    assert message["params"]["progressToken"] == id_
                elif "method" not in message:
                    assert message["id"] == id_
                delivered += owner is not None
        for for_client, by_client in server.answered:
            assert for_client == by_client, seed
        asked += len(server.answered)
    assert delivered > 500
    assert asked > 50
