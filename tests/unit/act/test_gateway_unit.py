"""The units of systemd that start the MCP gateway for the user's own sessions."""

import sys

from ramherd.act.gateway_unit import render_service, render_socket


def test_the_socket_is_on_loopback() -> None:
    """On the port that the settings of agents name."""
    assert "ListenStream=127.0.0.1:20000\n" in render_socket(20000)


def test_the_service_finds_programs_and_directories() -> None:
    """Variables with spaces and dollars are quoted; no others are passed."""
    text = render_service({"PATH": "/a b:/$x", "XDG_STATE_HOME": "/s", "SECRET": "x"})

    assert f'ExecStart="{sys.executable}" "-P" "-m" "ramherd" "mcp" "serve"\n' in text
    assert 'Environment="PATH=/a b:/$$x"\n' in text
    assert 'Environment="XDG_STATE_HOME=/s"\n' in text
    assert "SECRET" not in text
    assert "Delegate=yes\n" in text
