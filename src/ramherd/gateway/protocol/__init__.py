"""Routing of JSON-RPC messages between the clients and one server: no IO, no clock."""
