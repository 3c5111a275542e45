"""The heap that each node gets, as it says itself."""

from collections.abc import Iterator, Sequence

from ramherd.core.model import Machine
from ramherd.core.policies import Policy
from ramherd.core.units import MIB, format_size
from ramherd.decide.budget import budget_bytes
from ramherd.doctor.facts import Node
from ramherd.doctor.findings import Finding, Severity

# Two such heaps are all of the memory. Node takes no more by itself.
LARGE_SHARE = 0.5
# V8 reports this much more than was set.
REPORTED_MORE_BYTES = 48 * MIB
# gemini and qwen hold 195 to 205 MiB at rest; V8 aborts at its limit.
LEAST_HEAP_BYTES = 256 * MIB
TOO_SMALL = "gemini and qwen hold 200 MiB at rest: V8 aborts at its limit (exit status 134)"


def check_nodes(nodes: Sequence[Node], machine: Machine) -> Iterator[Finding]:
    if not nodes:
        yield Finding("heap", Severity.OK, "no node in PATH")
    for node in nodes:
        yield check_failed(node) if node.error else check_heap(node, machine)


def check_failed(node: Node) -> Finding:
    wrong_options = "NODE_OPTIONS" in node.error
    return Finding(
        "heap", Severity.PROBLEM if wrong_options else Severity.HINT,
        f"{node.path} did not tell its heap: {node.error}",
        "no program on it starts: agents, MCP servers, builds" if wrong_options
        else "how much it may hold is not known",
        "unset NODE_OPTIONS" if wrong_options else f"{node.path} --version",
    )  # fmt: skip


def check_heap(node: Node, machine: Machine) -> Finding:
    most, heap = machine.most_bytes, node.heap_bytes
    fit = budget_bytes(machine, 0, Policy()) // heap if heap else 0
    what = (
        f"{node.path} {node.version} may grow to a heap of {format_size(heap)}; {fit} full ones fit"
    )
    numbers = {"heap_bytes": heap, "most_bytes": most, "fit": fit}
    if heap - REPORTED_MORE_BYTES > LARGE_SHARE * most:
        why = "it collects late, and the kernel kills it or another before V8 says a word"
        command = f"export NODE_OPTIONS=--max-old-space-size={most // 4 // MIB}"
        return Finding("heap", Severity.WARNING, what, why, command, numbers=numbers)
    if heap < LEAST_HEAP_BYTES:
        return Finding(
            "heap", Severity.WARNING, what, TOO_SMALL, "unset NODE_OPTIONS", numbers=numbers
        )
    return Finding("heap", Severity.OK, what, numbers=numbers)
