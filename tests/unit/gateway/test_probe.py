"""The verdict of `ramherd mcp probe`."""

import pytest

from ramherd.core.errors import UsageError
from ramherd.gateway.probe import (
    ProbeAnswers,
    ProbeCall,
    ProbeRecord,
    choose_calls,
    judge,
    sample,
)

CALLS = [ProbeCall("a", {}), ProbeCall("b", {})]
SAME = ProbeAnswers([1, 2], [1, 2])
READS = {"name": "list", "annotations": {"readOnlyHint": True}}
WRITES = {"name": "add", "inputSchema": {}}


@pytest.mark.parametrize(
    ("probed", "mode"),
    [
        (ProbeRecord(CALLS, SAME, SAME, SAME), "shared"),
        (ProbeRecord(CALLS, SAME, SAME, ProbeAnswers([1, 2], [1, 3])), "serial"),
        (ProbeRecord(CALLS, SAME, ProbeAnswers([1, 2], [1, 3]), SAME), "per-agent"),
        (ProbeRecord(CALLS, SAME, SAME, SAME, ["add"]), "per-agent"),
        (ProbeRecord(CALLS, ProbeAnswers([1, 2], [3, 4]), SAME, SAME), "per-agent"),
    ],
)
def test_the_verdict(probed: ProbeRecord, mode: str) -> None:
    """Shared only if every tool that may write was called, and every answer was the same."""
    assert judge(probed).mode == mode


def test_an_answer_that_always_differs_is_not_compared() -> None:
    """The time, for example."""
    private = ProbeAnswers([1, "10:00"], [1, "10:01"])
    verdict = judge(ProbeRecord(CALLS, private, SAME, SAME))

    assert (verdict.mode, verdict.evidence["compared"]) == ("shared", 1)


def test_only_tools_that_read_are_called_unasked() -> None:
    """Others are called if the user names them."""
    assert choose_calls([READS, WRITES], {}) == [ProbeCall("list", {})]
    assert choose_calls([READS, WRITES], {"add": {"x": 1}}) == [ProbeCall("add", {"x": 1})]
    with pytest.raises(UsageError, match="no tool of the server declares that it only reads"):
        choose_calls([WRITES], {})
    with pytest.raises(UsageError, match="the server has no tool 'ad'") as caught:
        choose_calls([WRITES], {"ad": None})
    assert caught.value.hint == "did you mean 'add'?"


def test_arguments_that_a_schema_accepts() -> None:
    """Required keys only."""
    properties = {
        "s": {"type": "string"}, "n": {"type": "integer", "minimum": 3}, "l": {"type": "array"},
        "e": {"enum": ["x", "y"]}, "d": {"type": "string", "default": "z"}, "optional": {},
        "b": {"type": "boolean"},
    }  # fmt: skip
    schema = {"type": "object", "properties": properties, "required": list("snledb")}

    expected = {"s": "test", "n": 3, "l": [], "e": "x", "d": "z", "b": False}
    assert sample(schema) == expected
