"""The MCP gateway: one server process for many agents, over HTTP on 127.0.0.1.

`protocol/` routes messages (values in, values out); `streamable_http.py` is the HTTP side,
`server_process.py` a server in its pen, `serve.py` the gateway's process as a whole.
"""
