"""The program that finishes one worktree, or merges the branches that a worktree starts from. It is
started by its path, joins its pen itself, reads its task as JSON from standard input, and prints
its result.
"""

import json
import os
import sys
from dataclasses import asdict
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))))

from ramherd.act.worktrees.bases import merge_branches
from ramherd.act.worktrees.finishing import finish
from ramherd.core.model import Tree
from ramherd.system.descendants import kill_descendants
from ramherd.system.files import write_control
from ramherd.system.own_process import AGENT_OOM_SCORE_ADJ, become_subreaper, set_oom_score_adj


def carry_out(asked: dict[str, Any]) -> dict[str, Any]:
    if task := asked.get("merge"):
        parents = [(name, Tree(**tree), changed) for name, tree, changed in task["parents"]]
        return asdict(merge_branches(task["top"], parents))
    task = asked["finish"]
    return finish(Tree(**task["tree"]), task["job"], task["most_s"])


def main(asked: dict[str, Any]) -> None:
    for path in asked["join"]:
        write_control(path, "0")
    set_oom_score_adj(AGENT_OOM_SCORE_ADJ)
    become_subreaper()
    try:
        print(json.dumps(carry_out(asked)), flush=True)
    finally:
        kill_descendants(os.getpid())


main(json.load(sys.stdin))
os._exit(0)
