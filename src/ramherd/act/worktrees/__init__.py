"""Git worktrees: each job whose agent shares a repository works in one of its own, on a branch of
its own, so that agents do not write over each other.

`git.py` runs git, `bases.py` has the commit that a worktree starts from, `making.py` makes it. When
the job has ended, `finishing.py` commits what is left, and `removal.py` removes a worktree in which
nothing was changed. Both work in the process of `worktree_process.py`, as the merges of bases do.
`job_branch.py` finds what a job has changed, `merge_back.py` merges it into the user's branch, and
`drop_branch.py` removes it.
"""

# A file in git's own folder of a worktree that was made. It has the commit that the job started
# from.
MARK = "ramherd-made"
