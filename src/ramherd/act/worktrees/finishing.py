"""Finishes the worktree of a job that has ended."""

from typing import Any

from ramherd.act.worktrees.removal import is_kept
from ramherd.core.model import Tree


def finish(tree: Tree, job: str, most_s: float) -> dict[str, Any]:  # noqa: ARG001
    """What became of it, by the keys of `core.agent_task.SAID`."""
    return {"worktree": tree.path if is_kept(tree) else None}
