"""A gateway for clients that cannot send a token, such as the conformance suite: a request without
one gets a client that may use every server. Everything else is the real process.

    python -m support.mcp.open_gateway [PORT]
"""

import sys

from ramherd.api.request_head import RequestHead
from ramherd.config.load import load_config
from ramherd.config.paths import runtime_dir
from ramherd.gateway import serve
from ramherd.gateway.gateway import ALL_SERVERS, KnownClient
from ramherd.gateway.gateway_listener import GatewayListener
from ramherd.store.mcp_clients import drop_client, hash_token, register_client


def main() -> None:
    runtime = runtime_dir()
    token = register_client(runtime, servers=(ALL_SERVERS,), run=None, cwd="/", agent="tests")

    def find_client(self: GatewayListener, head: RequestHead) -> KnownClient | None:
        return self.find(hash_token(token))

    GatewayListener.find_client = find_client  # type: ignore[method-assign]
    try:
        sys.exit(serve.main(load_config(), int(sys.argv[1]) if sys.argv[1:] else 0))
    finally:
        drop_client(runtime, token)


if __name__ == "__main__":
    main()
