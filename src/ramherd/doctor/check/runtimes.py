"""The heap that each node reports for itself; and variables that do not work as intended, or do too
much.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from shlex import quote

from ramherd.core.model import Machine
from ramherd.core.policies import Policy
from ramherd.core.units import MIB, format_size
from ramherd.decide.budget import budget_bytes
from ramherd.doctor.check.edits import comment_out, edit_command, place
from ramherd.doctor.facts import COPY_SUFFIX, SHELL_COMMENT, Node, Variable
from ramherd.doctor.findings import Finding, Fix, Severity

# Two such heaps fill all of the memory. By default Node takes no more.
LARGE_SHARE = 0.5
# V8 reports this much more than was set.
REPORTED_MORE_BYTES = 48 * MIB
# gemini and qwen hold 195 to 205 MiB at rest; V8 aborts at its limit.
LEAST_HEAP_BYTES = 256 * MIB
TOO_SMALL = "gemini and qwen hold 200 MiB at rest: V8 aborts at its limit (exit status 134)"
# BUN_JSC_* variables tested with claude, which does not start with an unknown name.
KNOWN_JSC = {"BUN_JSC_forceRAMSize", "BUN_JSC_useJIT", "BUN_JSC_gcMaxHeapSize"}
BUILDS = "   # only if no build needs it"
# These files are not for a shell.
NO_SHELL = (".conf", "environment", ".pam_environment")
_OLD_SPACE = re.compile(r"--max[-_]old[-_]space[-_]size=(\d+)")


def check_nodes(nodes: Sequence[Node], machine: Machine) -> Iterator[Finding]:
    if not nodes:
        yield Finding("heap", Severity.OK, "no node in PATH")
    for node in nodes:
        yield check_failed(node) if node.error else check_heap(node, machine)


def check_failed(node: Node) -> Finding:
    wrong_options = "NODE_OPTIONS" in node.error
    return Finding(
        "heap", Severity.PROBLEM if wrong_options else Severity.HINT,
        f"{node.path} did not report its heap size: {node.error}",
        "no program on it starts: agents, MCP servers, builds" if wrong_options
        else "its heap limit is unknown",
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


def check_variables(
    variables: Sequence[Variable], machine: Machine, bun_clis: Collection[str]
) -> Iterator[Finding]:
    found = [
        finding
        for variable in variables
        if (finding := check_variable(variable, machine, bun_clis)) is not None
    ]
    yield from found or [Finding("variables", Severity.OK, "no variable is useless or too large")]


def check_variable(
    variable: Variable, machine: Machine, bun_clis: Collection[str]
) -> Finding | None:
    if variable.is_removed:
        what = f"{variable.name} is set in this shell only: it is no longer in a start file"
        return Finding("variables", Severity.OK, what)
    if variable.name.startswith("BUN_JSC_"):
        return check_jsc(variable)
    if variable.name == "NODE_OPTIONS":
        return check_node_options(variable, machine, bun_clis)
    return OTHERS[variable.name](variable) if variable.name in OTHERS else None


def check_node_options(
    variable: Variable, machine: Machine, bun_clis: Collection[str]
) -> Finding | None:
    match = _OLD_SPACE.search(variable.value)
    if match is None:
        return None
    size, most = int(match[1]) * MIB, machine.most_bytes
    numbers = {"heap_bytes": size + REPORTED_MORE_BYTES, "most_bytes": most}
    where = f"NODE_OPTIONS in {place(variable.line)} sets a heap of {format_size(size)}"
    if size > LARGE_SHARE * most:
        why = (
            f"every node gets it, MCP servers and builds too, and the machine has "
            f"{format_size(most)}: two of them fill it, and the kernel kills"
        )
        return make("node-options", Severity.WARNING, where, why, variable, numbers=numbers)
    if size < LEAST_HEAP_BYTES:
        return make("node-options", Severity.WARNING, where, TOO_SMALL, variable, numbers=numbers)
    if bun_clis:
        names = " and ".join(sorted(bun_clis))
        why = (
            f"no effect on {names}: built with Bun, not Node. It reaches only the Node programs "
            "that they start (MCP servers, builds)"
        )
        return make("node-options", Severity.HINT, where, why, variable, numbers=numbers)
    return None


def check_jsc(variable: Variable) -> Finding | None:
    if variable.name not in KNOWN_JSC:
        what = f"{variable.name} in {place(variable.line)} is not a name that was tried"
        why = "claude does not start with a BUN_JSC_ name that it does not know"
        return make("bun-options", Severity.WARNING, what, why, variable)
    if variable.name == "BUN_JSC_gcMaxHeapSize":
        return without_effect(variable)
    return None


def without_effect(variable: Variable) -> Finding:
    what = f"{variable.name} in {place(variable.line)}"
    why = "no effect on the memory of claude (20 heavy prompts with it and without)"
    return make("bun-options", Severity.HINT, what, why, variable)


def check_smol(variable: Variable) -> Finding | None:
    return without_effect(variable) if "--smol" in variable.value else None


def check_threadpool(variable: Variable) -> Finding | None:
    if variable.value.strip() != "4":
        return None
    what = f"UV_THREADPOOL_SIZE=4 in {place(variable.line)}"
    return make("threadpool", Severity.HINT, what, "4 is what node has without it", variable)


def check_invented(variable: Variable) -> Finding:
    what = f"{variable.name} in {place(variable.line)}"
    return make(
        "invented", Severity.HINT, what, "nothing reads it: there is no such setting", variable
    )


def check_subagents(variable: Variable) -> Finding:
    what = f"{variable.name}={variable.value} in {place(variable.line)}"
    why = "a count knows nothing of memory, and subagents above it fail instead of waiting"
    command = "ramherd hook install claude"
    return Finding("subagents", Severity.HINT, what, why, command)


OTHERS: Mapping[str, Callable[[Variable], Finding | None]] = {
    "BUN_OPTIONS": check_smol,
    "UV_THREADPOOL_SIZE": check_threadpool,
    "NODE_MAX_CONCURRENT_REQUESTS": check_invented,
    "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": check_subagents,
}


def make(
    check: str, level: Severity, what: str, why: str, variable: Variable, *,
    numbers: Mapping[str, int] | None = None,
) -> Finding:  # fmt: skip
    command, fix = taking_out(variable)
    return Finding(check, level, what, why, command, fix, numbers or {})


def taking_out(variable: Variable) -> tuple[str, Fix | None]:
    """The command, and a fix if the line stands alone. NODE_OPTIONS is for the user to judge: a
    build may need it, and it may have other options.
    """
    line = variable.line
    if line.kind == "environment":
        return f"unset {variable.name}", None
    if variable.name == "NODE_OPTIONS":
        return f"{edit_command(line)}{BUILDS}", None
    if line.kind == "settings" and not line.number:
        return f"{edit_command(line)}   # remove it from env", None
    if not line.is_plain:
        return edit_command(line), None
    prefix = "# " if line.path.endswith(NO_SHELL) else SHELL_COMMENT
    sudo = "" if line.is_writable else "sudo "
    command = f"{sudo}sed -i{COPY_SUFFIX} '{line.number}s/^/{prefix}/' {quote(line.path)}"
    return command, comment_out(line, prefix)
