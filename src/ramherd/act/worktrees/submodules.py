"""Submodules of a worktree. git leaves them empty in a new worktree, and a commit that is made in a
submodule exists only there: neither in the user's checkout nor in the worktrees of other jobs.
"""

from collections.abc import Iterator
from pathlib import Path

from ramherd.act.worktrees.git import run_git

# Runs in each submodule of the user's checkout, parents first: `git submodule foreach` sets the
# names in lower case. The worktree gets the submodule from there, not from a remote.
FILL = """\
to=$RAMHERD_TREE${toplevel#"$RAMHERD_TOP"}
case $(git -C "$to" ls-files -s -- "$sm_path") in 160000*)
    from=$(git rev-parse --absolute-git-dir)
    remote=$(git config --get remote.origin.url)
    git -C "$to" -c protocol.file.allow=always -c "submodule.$name.url=$from" \\
        submodule --quiet update --init --checkout -- "$sm_path" >&2 ||
        echo "ramherd: submodule $displaypath is not complete in $RAMHERD_TREE" >&2
    [ -z "$remote" ] || git -C "$to/$sm_path" remote set-url origin "$remote" ;;
esac
:
"""


def find_submodules(top: str, before: str, after: str) -> Iterator[tuple[str, str]]:
    """The submodules that point to another commit, each with that commit."""
    words = ("diff-tree", "-r", "-z", "--no-renames", before, after)
    fields = run_git(top, *words).split("\0")
    for entry, path in zip(fields[::2], fields[1::2], strict=False):
        _mode, mode, _object, commit, _what = entry.split()
        if mode == "160000":
            yield path, commit


def fetch_submodules(worktree: str, checkout: str, before: str, after: str, branch: str) -> None:
    """Fetches commits made in the submodules of the worktree, if there is one, into the user's
    submodules that exist. They get a branch: `git submodule update` would fetch a commit without a
    ref from the remote.
    """
    if not worktree:
        return
    for path, commit in find_submodules(checkout, before, after):
        theirs, ours = Path(worktree, path), Path(checkout, path)
        if (theirs / ".git").exists() and (ours / ".git").exists():
            words = ("fetch", "-q", "--no-tags", str(theirs), f"+{commit}:refs/heads/{branch}")
            run_git(str(ours), "-c", "protocol.file.allow=always", *words)
