"""Files and tokens of runs that use the MCP gateway."""

import json
from pathlib import Path

from ramherd.act.mcp_access import drop_clients_of, revoke_servers, write_files
from ramherd.agents import ConfigFile
from ramherd.store.mcp_clients import CLIENTS, register_client


def add_client(runtime: Path, run: str) -> str:
    return register_client(runtime, servers=("time",), run=run, cwd="/", agent="claude")


def test_a_token_ends_with_its_run(tmp_path: Path) -> None:
    """Also if another supervisor started the run, and the token is not known."""
    token = add_client(tmp_path, "one")
    add_client(tmp_path, "two")
    add_client(tmp_path, "three")
    (tmp_path / CLIENTS / "broken.json").write_text("{")
    revoke_servers(tmp_path, "one", token)
    revoke_servers(tmp_path, "two", "")
    drop_clients_of(tmp_path, "gone")

    left = [path.read_text() for path in (tmp_path / CLIENTS).glob("*.json")]
    assert [json.loads(text)["run"] for text in left if text != "{"] == ["three"]


def test_the_files_of_a_cli_are_private(tmp_path: Path) -> None:
    """They are replaced as a whole, in a directory of their own."""
    path = tmp_path / "configs/claude.json"
    for text in ("first", "second"):
        write_files([ConfigFile(str(path), text)])

    assert path.read_text() == "second"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [one.name for one in path.parent.iterdir()] == ["claude.json"]


def test_a_home_directory_of_links(tmp_path: Path) -> None:
    """Our settings stay ours; what the CLI stores goes to the user's directory, from the first run
    on; a second run finds it as it is.
    """
    own, made = tmp_path / "own/.gemini", tmp_path / "made/.gemini"
    own.mkdir(parents=True)
    (own / "settings.json").write_text("theirs")
    (own / "oauth_creds.json").write_text("login")
    files = [
        ConfigFile(str(made / "settings.json"), "ours"),
        ConfigFile(str(made), links_to=str(own)),
    ]
    for _ in range(2):
        write_files(files)
        (made / "tmp/session").write_text("kept")

    assert (made / "settings.json").read_text() == "ours"
    assert (own / "settings.json").read_text() == "theirs"
    assert (made / "oauth_creds.json").read_text() == "login"
    assert (own / "tmp/session").read_text() == "kept"
