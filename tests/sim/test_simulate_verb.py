"""`ramherd simulate` from the outside."""

import json
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ramherd.cli.main import call

KEYS = {
    "policy", "traces", "jobs", "budget_bytes", "makespan_s", "oracle_s", "oracle_share",
    "area_share", "oom_kills", "preempted", "redone_share", "utilisation",
}  # fmt: skip


@pytest.fixture
def traces(tmp_path: Path) -> str:
    line = {"task": "a", "t_s": list(range(60)), "mb": [12] + [190] * 29 + [400] * 5 + [200] * 25}
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join([json.dumps(line)] * 5))
    return str(path)


@pytest.mark.parametrize("policy", ["grants", "fixed:2", "reserve:512MB", "memfree:300MB"])
def test_json_has_the_agreed_keys(
    policy: str, traces: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One object, for every policy."""
    argv = ["simulate", "--traces", traces, "--copies", "3", "--budget", "1GB", "--json"]
    assert call([*argv, "--policy", policy]) == 0

    figures = json.loads(capsys.readouterr().out)
    assert figures.keys() >= KEYS
    assert (figures["jobs"], figures["done"], figures["lost"]) == (15, 15, 0)


def test_a_picture_is_drawn_as_svg(traces: str, tmp_path: Path) -> None:
    """Well-formed, with the line of the budget."""
    path = tmp_path / "memory.svg"
    assert call(["simulate", "--traces", traces, "--budget", "1GB", "--plot", str(path)]) == 0

    svg = ElementTree.parse(path).getroot()
    texts = [element.text for element in svg.iter() if element.tag.endswith("text")]
    assert "954 MiB" in texts


def test_a_picture_is_drawn_as_png(traces: str, tmp_path: Path) -> None:
    """With rows of the size in its header."""
    path = tmp_path / "memory.png"
    assert call(["simulate", "--traces", traces, "--budget", "1GB", "--plot", str(path)]) == 0

    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    length = int.from_bytes(data[33:37], "big")
    assert len(zlib.decompress(data[41 : 41 + length])) == 400 * (1 + 3 * 1000)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--policy", "magic"], "no policy 'magic'"),
        (["--policy", "fixed:0"], "no policy 'fixed:0'"),
        (["--scenario", "in-stepp"], "did you mean 'in-step'?"),
        (["--plot", "memory.jpg"], "end its name with .svg or .png"),
        (["--traces", "/nowhere"], "cannot read /nowhere"),
        (["--copies", "0"], "--copies 0 is below 1"),
        (["--budget", "4XB"], "unknown unit"),
    ],
)
def test_a_wrong_request_is_said_in_one_line(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit code 2, and nothing is simulated."""
    assert call(["simulate", *argv]) == 2
    assert said in capsys.readouterr().err


def test_a_scenario_is_played_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    """A failed job is visible in the exit code."""
    assert call(["simulate", "--scenario", "too-big"]) == 1
    assert "1 failed, 0 lost" in capsys.readouterr().out
    assert call(["simulate", "--scenario", "list"]) == 0
