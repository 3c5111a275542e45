"""The official conformance suite through the gateway, with the example server of the Python SDK on
stdio behind it. A scenario passes if no check fails, so a server that does nothing passes some:
the successful checks are counted too.
"""

import json
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from ramherd.act.gateway_process import read_gateway
from support.mcp.tools import CONFORMANCE_SERVER, NODE, SUITE, open_gateway, require_tools

TESTS = Path(__file__).parents[2]
LEGACY, MODERN = "2025-11-25", "2026-07-28"
SCENARIOS = {LEGACY: 30, MODERN: 37}
# Of the scored scenarios; the server itself over HTTP has 70 and 120.
CHECKS = {LEGACY: 69, MODERN: 120}
# Not scored, and wanted all the same: each with its number of checks.
FURTHER = {
    LEGACY: {"server-session-lifecycle": 3},
    MODERN: {
        "http-header-validation": 14, "http-custom-header-server-validation": 10,
        "json-schema-2020-12": 8,
    },
}  # fmt: skip
START_S, SUITE_S = 30.0, 120.0


@dataclass
class OpenGateway:
    port: int
    folder: Path

    def run_suite(self, revision: str, name: str = "") -> "SuiteResult":
        output = self.folder / f"{revision}{name}"
        done = subprocess.run(
            [NODE, SUITE, "server", "--url", f"http://localhost:{self.port}/mcp/example",
             "--requirements", revision, "-o", str(output)],
            capture_output=True, text=True, timeout=SUITE_S, check=False,
        )  # fmt: skip
        return SuiteResult(done.returncode, done.stdout, output)


# server-NAME-2026-11-18T04-14-48-553Z
WRITTEN = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")


@dataclass
class SuiteResult:
    code: int
    printed: str
    output: Path

    def checks(self) -> dict[str, Counter[str]]:
        """By scenario, how many checks have each status."""
        found = {}
        for file in self.output.glob("**/checks.json"):
            name = WRITTEN.sub("", file.parent.name.removeprefix("server-"))
            found[name] = Counter(check["status"] for check in json.loads(file.read_text()))
        return found


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[OpenGateway]:
    require_tools()
    runtime, config = tmp_path / "ramherd-run", tmp_path / "config" / "ramherd"
    runtime.mkdir(0o700)
    config.mkdir(parents=True)
    command = json.dumps(CONFORMANCE_SERVER)
    (config / "config.toml").write_text(
        f'[mcp.servers.example]\ncommand = {command}\nshare = "shared"\n'
    )
    env = {
        **os.environ, "RAMHERD_RUNTIME_DIR": str(runtime), "PYTHONPATH": str(TESTS),
        "XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }  # fmt: skip
    process = subprocess.Popen(open_gateway(), env=env, stdin=subprocess.DEVNULL)
    deadline_s = time.monotonic() + START_S
    while (address := read_gateway(runtime)) is None:
        assert process.poll() is None, "the gateway did not start"
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    yield OpenGateway(address.port, tmp_path)
    process.terminate()
    process.wait(START_S)


def assert_full_score(result: SuiteResult, revision: str) -> None:
    assert result.code == 0, result.printed[-4000:]
    found = result.checks()
    unscored = {"json-schema-2020-12", "server-session-lifecycle", "server-sse-polling",
                "http-header-validation", "http-custom-header-server-validation"}  # fmt: skip
    scored = {
        name: checks for name, checks in found.items()
        if name not in unscored and not name.startswith("tasks-")
    }  # fmt: skip
    assert len(scored) == SCENARIOS[revision]
    assert all(checks["FAILURE"] == 0 for checks in scored.values())
    assert sum(checks["SUCCESS"] for checks in scored.values()) >= CHECKS[revision]
    for name, number in FURTHER[revision].items():
        assert found[name]["SUCCESS"] == number, (name, found[name])
        assert found[name]["FAILURE"] == 0


def test_both_eras_have_full_scores(gateway: OpenGateway) -> None:
    """Through one gateway process; then three suites at the same time."""
    for revision in (LEGACY, MODERN):
        assert_full_score(gateway.run_suite(revision), revision)
    for revision in (LEGACY, MODERN):
        with ThreadPoolExecutor(3) as pool:
            names = [f"-{number}" for number in range(3)]
            results = pool.map(lambda name, rev=revision: gateway.run_suite(rev, name), names)
            for result in results:
                assert_full_score(result, revision)
