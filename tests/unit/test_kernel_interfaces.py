"""`system/` is the only package that uses the kernel's own interfaces, and each kernel file has one
reader: another platform is added in one place, and two programs never read a file differently.
"""

import ast
from collections.abc import Iterator

import pytest

from ramherd.system import own_process, termination
from support.source_files import FILES, imports

OUTSIDE = [name for name in FILES if not name.startswith("ramherd.system.")]
MODULES = {"select", "selectors", "ctypes"}
CALLS = {
    "epoll", "poll", "pidfd_open", "pidfd_send_signal", "splice", "eventfd", "eventfd_read",
    "eventfd_write", "AF_NETLINK", "inotify_init", "prctl",
}  # fmt: skip
OWNERS = {"os", "signal", "select", "socket", "ctypes"}
PROC_PATHS = ("/proc", "proc/")
# How a path ends, and the only module that opens it.
READERS = {
    "/stat": "ramherd.system.proc_stat",
    "/children": "ramherd.system.proc_stat",
    "/statm": "ramherd.system.procfs",
    "/status": "ramherd.system.procfs",
    "/environ": "ramherd.system.procfs",
    "/cmdline": "ramherd.system.procfs",
    "/smaps_rollup": "ramherd.system.procfs",
    "/boot_id": "ramherd.system.procfs",
    "/meminfo": "ramherd.system.procfs",
    "/uptime": "ramherd.system.procfs",
    "/vmstat": "ramherd.system.procfs",
    "/mountinfo": "ramherd.system.procfs",
    "/swaps": "ramherd.system.procfs",
    "/cgroup": "ramherd.system.procfs",
    "memory.limit_in_bytes": "ramherd.measure.cgroups",
    "memory.max": "ramherd.measure.cgroups",
}
# These set a limit, which is for pens to do; they read nothing.
WRITERS = {"write_control", "try_control"}


def parse(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text())


def find_texts(node: ast.AST) -> Iterator[str]:
    """Strings that a module uses: not its docstrings, and not what is written to a control file."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in WRITERS:
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from find_texts(child)


def find_kernel_calls(module: str) -> Iterator[str]:
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Attribute) and node.attr in CALLS:
            owner = getattr(node.value, "id", "")
            if owner in OWNERS:
                yield f"{owner}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module in OWNERS:
            yield from (alias.name for alias in node.names if alias.name in CALLS)


def find_joined_paths(module: str) -> Iterator[str]:
    """`f"{proc}/..."`, `PROC / ...` and `host.proc / ...`: a path that a test's root begins."""
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.JoinedStr) and len(node.values) > 1:
            first, second = node.values[:2]
            begins = isinstance(first, ast.FormattedValue) and is_proc(first.value)
            if begins and isinstance(second, ast.Constant) and str(second.value).startswith("/"):
                yield ast.unparse(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and is_proc(node.left):
            yield ast.unparse(node)


def is_proc(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.lower().strip("_") == "proc"


def test_these_rules_find_what_they_look_for() -> None:
    """A rule that nothing can break holds nothing: system/ itself breaks each of them."""
    assert imports("ramherd.system.wait") & MODULES
    assert set(find_kernel_calls("ramherd.system.pidfd")) >= {"os.pidfd_open", "select.poll"}
    texts = find_texts(parse("ramherd.system.own_process"))
    assert any(text.startswith(PROC_PATHS) for text in texts)
    assert any("/meminfo" in path for path in find_joined_paths("ramherd.system.procfs"))


@pytest.mark.parametrize("module", OUTSIDE)
def test_only_system_uses_what_one_kernel_has(module: str) -> None:
    """epoll, pidfd, eventfd, splice, netlink, prctl and /proc have small functions in system/."""
    assert not imports(module) & MODULES
    assert not list(find_kernel_calls(module))
    assert not [text for text in find_texts(parse(module)) if text.startswith(PROC_PATHS)]
    assert not list(find_joined_paths(module))


@pytest.mark.parametrize(("ending", "reader"), READERS.items())
def test_a_kernel_file_is_opened_in_one_module(ending: str, reader: str) -> None:
    """Two readers of one file disagree in the end."""
    found = {
        module
        for module in FILES
        if any(is_file(text, ending) for text in find_texts(parse(module)))
    }

    assert found == {reader}


def is_file(text: str, ending: str) -> bool:
    """/sys/fs/cgroup is a directory."""
    return text.endswith(ending) and not text.endswith("sys/fs/cgroup")


def test_there_is_one_way_to_end_processes() -> None:
    """TERM is sent by the one ladder; and by the executor, for which `decide/run_end` keeps the
    grace over the ticks of a run.
    """
    senders = {module for module in FILES if "signal.SIGTERM" in sent_signals(parse(module))}

    assert senders == {"ramherd.act.executor"}
    assert "first: int = signal.SIGTERM" in FILES[termination.__name__].read_text()


def sent_signals(tree: ast.Module) -> set[str]:
    """What is passed to a function, other than to one that says how a signal is received."""
    return {
        ast.unparse(arg)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) not in ("signal.signal", "signal.getsignal")
        for arg in node.args
    }


def test_there_is_one_way_to_become_a_subreaper() -> None:
    """Its number stands in one module."""
    found = [name for name in FILES if "PR_SET_CHILD_SUBREAPER" in FILES[name].read_text()]

    assert found == [own_process.__name__]
