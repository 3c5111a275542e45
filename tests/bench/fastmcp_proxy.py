"""fastmcp's proxy for one server on stdio, run by the Python that has fastmcp: PORT COMMAND..."""

import sys
from importlib import import_module

port, command, *args = sys.argv[1:]
server = {"command": command, "args": args}
proxy = import_module("fastmcp.server").create_proxy({"mcpServers": {"default": server}})
proxy.run(transport="http", host="127.0.0.1", port=int(port), path="/mcp", show_banner=False)
