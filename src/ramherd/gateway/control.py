"""The client side of the gateway's own socket: GET /servers, POST /restart/NAME, POST /probe/NAME,
POST /stop. Used by `ramherd mcp`; only this user can connect.
"""

import http.client
import json
from pathlib import Path
from typing import Any

from ramherd.core.errors import NoService, RamherdError
from ramherd.system.unix_socket import connect

SOCKET = "mcp/gateway.sock"
# A probe starts servers, some of them with npx.
ANSWER_S = 120.0


class SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = connect(self._path, self.timeout)


def ask_gateway(
    runtime: Path, path: str, body: Any = None, *, method: str = "GET", timeout_s: float = ANSWER_S
) -> Any:
    """NoService if no gateway runs; an error of the gateway is one line with its hint."""
    link = SocketConnection(runtime / SOCKET, timeout_s)
    try:
        link.request(method, path, body=json.dumps(body) if body is not None else None)
        response = link.getresponse()
        answer = json.loads(response.read() or b"null")
    except OSError as error:
        raise NoService(
            f"the MCP gateway does not run: {error.strerror or error}", hint="ramherd mcp serve"
        ) from None
    except (http.client.HTTPException, ValueError) as error:
        raise NoService(f"the MCP gateway gave no answer: {error}") from None
    finally:
        link.close()
    if response.status >= 400:
        raise RamherdError(answer.get("error", "no reason given"), hint=answer.get("hint", ""))
    return answer
