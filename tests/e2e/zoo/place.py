"""Where the zoo's programs are: real MCP servers from npm, and small ones made here."""

import os
import shutil
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TOOLS = HERE.parents[2] / ".tools/zoo"
NAME = "mcp_zoo_server"
METADATA = "Metadata-Version: 2.1\nName: mcp-zoo-server\nVersion: 1.0\nRequires-Dist: mcp>=1.0\n"
SCRIPT = f"#!{{python}}\nimport sys\nfrom {NAME} import main\nsys.exit(main())\n"


@dataclass(frozen=True)
class Place:
    """Directories that are removed with the zoo."""

    root: Path

    @property
    def complete(self) -> Path:
        """Made when all processes of the zoo are there: then jobs begin to work."""
        return self.root / "complete"

    @property
    def server(self) -> list[str]:
        """A small MCP server, in an environment of its own as uvx makes them."""
        return [sys.executable, "-S", str(self.root / "venv/bin/mcp-zoo-server")]

    def program(self, name: str) -> str:
        """A program of that name that does nothing but wait."""
        path = self.root / "bin" / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            shutil.copy(shutil.which("sleep") or "/bin/sleep", path)
            path.chmod(0o755)
        return str(path)

    def node(self, package: str) -> list[str]:
        entry = TOOLS / f"node_modules/@modelcontextprotocol/{package}/dist/index.js"
        return ["node", "--import", str(HERE / "stay.mjs"), str(entry)]

    def subreaper(self, name: str) -> str:
        """Python under the name of a service manager."""
        path = self.root / "bin" / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            shutil.copy(os.path.realpath(sys.executable), path)
        return str(path)


def has_node() -> bool:
    return shutil.which("node") is not None and (TOOLS / "node_modules").is_dir()


def make_place(root: Path) -> Place:
    root.chmod(0o755)
    site = root / f"venv/lib/python3.{sys.version_info.minor}/site-packages"
    info = site / f"{NAME}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    script = root / "venv/bin/mcp-zoo-server"
    script.parent.mkdir()
    script.write_text(
        SCRIPT.format(python=sys.executable).replace(
            "import sys\n", f"import sys\nsys.path.insert(0, {str(site)!r})\n", 1
        )
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    shutil.copy(HERE / f"{NAME}.py", site)
    return Place(root)
