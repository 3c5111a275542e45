"""Which software a process runs: by binary, package or module, never by words in a command line."""

import json
from pathlib import Path

import pytest

from ramherd.core.errors import UsageError
from ramherd.strays.judge.software import TABLE, SoftwareTable, parse_software
from ramherd.strays.nouns import Kind, RunningProgram
from ramherd.strays.read.programs import (
    find_package,
    find_script_package,
    is_mcp_module,
    package_of_path,
    parse_script,
    read_program,
)


@pytest.mark.parametrize(
    ("interpreter", "words", "found"),
    [
        ("node", "node /x/cli.js --mcp", ("/x/cli.js", "")),
        ("node", "node --max-old-space-size=99 -r /hook.js /x/cli.js", ("/x/cli.js", "")),
        ("node", "bun run /x/cli.ts", ("/x/cli.ts", "")),
        ("node", "node -e code /x/claude", ("", "")),
        ("python", "python3 -m mcp_server_git --repo .", ("", "mcp_server_git")),
        ("python", "python3 -u -X dev /bin/aider", ("/bin/aider", "")),
        ("python", "python3 -c code claude", ("", "")),
        ("shell", "bash -lc claude", ("", "")),
        ("shell", "sh /x/run.sh", ("/x/run.sh", "")),
        ("node", "npm exec something", ("exec", "")),
        ("node", "", ("", "")),
    ],
)
def test_the_script_of_an_interpreter(interpreter: str, words: str, found: tuple[str, str]) -> None:
    """The first word that is no option, nor the value of one."""
    assert parse_script(interpreter, tuple(words.split())) == found


@pytest.mark.parametrize(("data", "found"), [(b"", ("",)), (b"a\xff\0b c\0", ("a\udcff", "b c"))])
def test_a_command_line_is_any_bytes(tmp_path: Path, data: bytes, found: tuple[str, ...]) -> None:
    """Also none, and such that are no text."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cmdline").write_bytes(data)
    program = read_program(7, str(tmp_path))
    assert program is not None
    assert program.argv == found


def test_a_package_is_told_by_its_directory() -> None:
    """The innermost one."""
    assert package_of_path("/a/node_modules/x/node_modules/@s/y/dist/i.js") == "@s/y"
    assert package_of_path("/a/node_modules/x/i.js") == "x"
    assert package_of_path("/a/b.js") == ""


def write_package(root: Path, **fields: object) -> str:
    root.mkdir(parents=True)
    (root / "package.json").write_text(json.dumps(fields))
    (root / "index.js").write_text("")
    return str(root / "index.js")


@pytest.mark.parametrize(
    ("fields", "is_mcp"),
    [
        ({"name": "x", "mcpName": "io.x"}, True),
        ({"name": "acme-mcp", "dependencies": {"@modelcontextprotocol/sdk": "1"}}, True),
        ({"name": "acme-agent", "dependencies": {"@modelcontextprotocol/sdk": "1"}}, False),
        ({"name": "acme-mcp", "dependencies": {"express": "1"}}, False),
        ({"name": "acme-mcp", "dependencies": []}, False),
    ],
)
def test_a_package_says_of_itself_that_it_is_a_server(
    tmp_path: Path, fields: dict[str, object], is_mcp: bool
) -> None:
    """Agents and other clients are built on the SDK too."""
    found = find_package(write_package(tmp_path / "p", **fields))

    assert found == (fields["name"], is_mcp)


def test_a_broken_package_is_none(tmp_path: Path) -> None:
    """Whatever stands in it."""
    path = write_package(tmp_path / "p", name=["x"])
    assert find_package(path) is None
    (tmp_path / "p/package.json").write_text("{")
    assert find_package(path) is None


def test_a_python_server_is_told_by_its_distribution(tmp_path: Path) -> None:
    """The one that its entry point imports, if that requires the SDK."""
    info = tmp_path / "lib/python3.12/site-packages/acme_mcp-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: acme-mcp\nRequires-Dist: mcp>=1\n")
    script = tmp_path / "bin/acme"
    script.parent.mkdir()
    script.write_text("#!/usr/bin/python3\nimport sys\nfrom acme_mcp import main\n")

    assert find_script_package(str(script), "/usr/bin/python3") == (str(script), "", True)
    assert is_mcp_module("acme_mcp", str(script))
    assert not is_mcp_module("acme", str(script))
    assert not is_mcp_module("other_mcp", str(script))


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (RunningProgram("/usr/local/bin/claude"), "claude"),
        (RunningProgram("/home/me/.local/share/claude/versions/2.1.197"), "claude"),
        (RunningProgram("/n/x.js", package="@anthropic-ai/claude-code", is_script=True), "claude"),
        (RunningProgram("/n/vendor/codex", package="@openai/codex-linux-x64"), "codex"),
        (RunningProgram("/usr/bin/python3", module="mcp_server_git"), "mcp-server-git"),
        (RunningProgram("/v/bin/aider", is_script=True), "aider"),
        (
            RunningProgram("/typescript/lib/tsserver.js", package="typescript", is_script=True),
            "tsserver",
        ),
        (RunningProgram("/n/typescript/bin/tsc", package="typescript", is_script=True), "tsc"),
        (RunningProgram("/n/x.js", package="@acme/mcp", is_script=True, is_mcp=True), "@acme/mcp"),
        (RunningProgram("/n/next.js", package="acme", is_script=True), None),
        (RunningProgram("/home/me/claude", is_script=True), None),
        (RunningProgram("/usr/bin/vim", ("vim", "claude")), "vim"),
        (RunningProgram("/usr/bin/grep", ("grep", "mcp-server-git")), None),
        (RunningProgram("/opt/mcp-server-everything"), None),
    ],
)  # fmt: skip
def test_software_is_known_by_its_program(program: RunningProgram, name: str | None) -> None:
    """What stands in the command line says nothing."""
    found = SoftwareTable().recognise(program)

    assert (found.name if found is not None else None) == name


def test_no_name_is_in_the_table_twice() -> None:
    """Or the first one would hide the other."""
    for field in ("programs", "packages", "modules", "paths"):
        names = [name for one in TABLE for name in getattr(one, field)]
        assert len(names) == len(set(names)), field


def test_a_user_adds_software() -> None:
    """And may say it of a program that the table has."""
    table = {"kind": "mcp", "programs": ["clangd"], "modules": ["acme_mcp"]}
    known = SoftwareTable(parse_software({"acme": (table, "f.toml")}))

    found = known.recognise(RunningProgram("/usr/bin/clangd"))

    assert found is not None
    assert (found.name, found.kind) == ("acme", Kind.MCP)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("x", "is not a table"),
        ({"kind": "virus", "programs": ["x"]}, "'virus' is not a kind"),
        ({"kind": "mcp"}, "has neither programs nor packages"),
        ({"kind": "mcp", "program": ["x"]}, "unknown key 'program'"),
        ({"kind": "mcp", "programs": "x"}, "'programs' is not a list of words"),
        ({"kind": "mcp", "programs": ["x"], "resume": 3}, "'resume' is not a string"),
    ],
)
def test_a_mistake_in_a_table_is_said(table: object, message: str) -> None:
    """With the file and the name."""
    with pytest.raises(UsageError, match=message) as error:
        parse_software({"acme": (table, "f.toml")})

    assert str(error.value).startswith("f.toml, software 'acme'")
