"""The program that finishes one worktree: started by a path, in a pen that it joins itself, with
what it needs as JSON in its only argument. It prints what became of the worktree.
"""

import json
import os
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))))

from ramherd.act.worktrees.finishing import finish
from ramherd.core.model import Tree
from ramherd.system.descendants import kill_descendants
from ramherd.system.files import write_control
from ramherd.system.own_process import AGENT_OOM_SCORE_ADJ, become_subreaper, set_oom_score_adj


def main(asked: dict[str, Any]) -> None:
    for path in asked["join"]:
        write_control(path, "0")
    set_oom_score_adj(AGENT_OOM_SCORE_ADJ)
    become_subreaper()
    try:
        print(json.dumps(finish(Tree(**asked["tree"]), asked["job"], asked["most_s"])), flush=True)
    finally:
        kill_descendants(os.getpid())


main(json.loads(sys.argv[1]))
os._exit(0)
