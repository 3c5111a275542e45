"""The modules of ramherd as source: what each imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

import ramherd

PACKAGE = Path(ramherd.__file__).parent
FILES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def imports(module: str) -> set[str]:
    """What a module imports anywhere in it, but for what only a type checker sees."""
    return set(find_imports(ast.parse(FILES[module].read_text())))


def find_imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "relative imports hide where they lead"
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in FILES or f"{inner}.__init__" in FILES else str(node.module)
    elif not is_for_the_type_checker(node):
        for child in ast.iter_child_nodes(node):
            yield from find_imports(child)


def is_for_the_type_checker(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
