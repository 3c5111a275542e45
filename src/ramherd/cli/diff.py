"""`ramherd diff JOB`: the changes of a job, committed or not, as git shows them."""

import argparse
import json
import os
import signal
import subprocess

from ramherd.act.worktrees.job_branch import (
    JobBranch,
    diff_words,
    index_with_new_files,
    read_changes,
)
from ramherd.cli.job_names import add_herd_option
from ramherd.cli.job_worktree import changes_json, find_job_branch, read_named_job

EPILOG = """\
examples:
  ramherd diff fix-lint
  ramherd diff fix-lint --stat
  ramherd diff fix-lint | git apply        # into any other checkout

While the job runs, the files of its worktree are compared, new ones too. git
shows the changes with your pager and colours.
"""
# These name another repository when git itself has started us, in a hook or an alias.
OF_ANOTHER = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
)  # fmt: skip
# git explains its own exit codes on stderr.
FAILED = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("job", metavar="JOB", help="its number or name")
    add_herd_option(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--stat", action="store_true", help="the number of lines in each file")
    how.add_argument("--name-only", action="store_true", help="the names of the files")
    how.add_argument("--json", action="store_true", help="files and lines as one JSON object")
    parser.set_defaults(verb=diff)


def diff(options: argparse.Namespace) -> int:
    stored = read_named_job(options.job, options.herd)
    branch = find_job_branch(stored)
    if options.json:
        print(json.dumps(diff_json(branch)))
        return 0
    flags = [f"--{name}" for name in ("stat", "name-only") if getattr(options, as_field(name))]
    return show(branch, flags)


def as_field(name: str) -> str:
    return name.replace("-", "_")


def diff_json(branch: JobBranch) -> dict[str, object]:
    return {
        "job": branch.job, "branch": branch.branch or None, "worktree": branch.worktree or None,
        "base": branch.base, "commit": branch.tip, **changes_json(read_changes(branch)),
    }  # fmt: skip


def show(branch: JobBranch, flags: list[str]) -> int:
    """git writes to our terminal or pipe itself."""
    own = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER}
    argv = ["git", "-C", branch.where, "diff", *flags, *diff_words(branch), "--"]
    with index_with_new_files(branch) as env:
        # Ctrl-C is for the pager, which decides itself when to end.
        before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
        try:
            code = subprocess.run(argv, env={**own, **env}, check=False).returncode
        finally:
            signal.signal(signal.SIGINT, before)
    return FAILED if code else 0
