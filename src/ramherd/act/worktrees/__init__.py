"""Git worktrees: each job whose agent shares a repository works in one of its own, on a branch of
its own, so that agents do not write over each other.

`git.py` runs git, `making.py` makes worktrees, `removal.py` removes those in which nothing changed.
"""
