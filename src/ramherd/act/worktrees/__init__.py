"""Git worktrees: each job whose agent shares a repository works in a worktree and on a branch of
its own, so that agents do not overwrite each other's files.

`git.py` runs git, `bases.py` finds the commit that a worktree starts from, `making.py` makes the
worktree. When the job has ended, `finishing.py` commits the remaining changes, and `removal.py`
removes a worktree without changes. Both run in the process of `worktree_process.py`, as the merges
of bases do. `job_branch.py` finds the changes of a job, `merge_back.py` merges them into the user's
branch, and `drop_branch.py` removes them.
"""

# A file in git's own folder of a worktree, written when the worktree is complete. It has the commit
# that the job started from.
MARK = "ramherd-made"
