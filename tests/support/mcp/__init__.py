"""Servers and clients of MCP for tests."""
