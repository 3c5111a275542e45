"""What an agent is asked to do, and what it said of its work: nouns without an agent in them."""

from ramherd.core.record import record

# What is known of a job's agent and of its worktree, in results and lists; of a plain command only
# `error` is. What is not known is None.
SAID = (
    "session", "turns", "tokens_in", "tokens_out", "cost_usd", "cost_is_estimate", "result",
    "model", "worktree", "branch", "files_changed", "lines_added", "lines_removed", "denied",
    "error", "resume", "left_out", "worktree_note", "fallback",
)  # fmt: skip


# A longer command or path is cut where tool calls are listed.
CALL_LENGTH = 40


def name_call(tool: str, what: str) -> str:
    """`Bash(npm test)`; the end of a long path, and the beginning of a long command."""
    if len(what) > CALL_LENGTH:
        kept = CALL_LENGTH - 3
        what = f"...{what[-kept:]}" if what.startswith("/") else f"{what[:kept]}..."
    return f"{tool}({what})" if what else tool


@record
class Tree:
    """A worktree of its own for one job: of which repository, from which commit, on which
    branch. `inside` is where in the repository the job works. `parents` are the jobs whose
    branches the worktree is to start from: none once these are merged into `commit`.
    """

    repository: str
    commit: str
    path: str
    branch: str
    inside: str = ""

    @property
    def directory(self) -> str:
        """Where the job works."""
        return f"{self.path}/{self.inside}" if self.inside not in ("", ".") else self.path

    parents: tuple[str, ...] = ()


@record
class MergedBase:
    """What came of merging the branches that a job starts from: the commit, or why there is none.
    `ours` and `theirs` are the jobs whose branches conflict in `files`; `path` is the worktree of
    the first, `branch` that of the second.
    """

    commit: str = ""
    error: str = ""
    ours: str = ""
    theirs: str = ""
    path: str = ""
    branch: str = ""
    files: tuple[str, ...] = ()


@record
class Brief:
    """A prompt for an agent. `program` is what a setting names instead of the one in PATH."""

    agent: str
    prompt: str
    model: str = ""
    fallback_model: str = ""
    max_cost_usd: float | None = None
    skip_permissions: bool = False
    program: str = ""
    # None: if others of its herd work in the same repository.
    worktree: bool | None = None
    # The commit that its worktree starts from, as the user names it; then `after` is order only.
    base: str = ""
    tree: Tree | None = None
    # So many jobs share a process, one after another.
    reuse: int = 0
    # The user's own, for the agent.
    args: tuple[str, ...] = ()
    # Tools that the user has allowed since (`ramherd retry --allow`).
    allow: tuple[str, ...] = ()
    on_limit: str = "wait"
    # A hash of what selects the account at the API: a key, a configuration directory.
    account: str = ""


# What becomes of a job at a usage limit: it waits, it fails, or it goes on with `fallback_model`
# where the limit concerns its model alone.
WAIT, FAIL, FALLBACK = "wait", "fail", "fallback_model"
ON_LIMIT = (WAIT, FAIL, FALLBACK)
# The model of the run that was refused, where the API does not name it.
THIS_MODEL = "this model"
# The window of an account that the API does not serve at all: no key, no login, no credit.
NO_ACCESS = "no_access"


WINDOW_NAMES = {
    "five_hour": "five-hour window", "seven_day": "weekly limit", "day": "daily quota",
    "seven_day_opus": "weekly Opus limit", "seven_day_sonnet": "weekly Sonnet limit",
    "month": "monthly limit", "overage": "extra usage", "": "usage limit",
}  # fmt: skip


def name_window(window: str) -> str:
    """A window by the name that people know."""
    return WINDOW_NAMES.get(window, window)


@record
class ApiRefusal:
    """The API serves an account no more for now. `window` is the limit that was hit, in the words
    of the API (`five_hour`, `seven_day_opus`), "" where it is not known, or NO_ACCESS. `model` is
    the one model that it concerns; `until_s` is epoch seconds.
    """

    what: str
    window: str = ""
    until_s: float | None = None
    model: str = ""


@record
class Said:
    """How a run's agent judges its own work, as far as it has said."""

    result: bool = False
    busy: bool = False  # tools of it work on, whatever it said
    needs_result: bool = True
    failure: str = ""
    overloaded: bool = False
    # What its job has cost so far, and may.
    cost_usd: float = 0.0
    limit_usd: float | None = None
    # With what its run was told of the herd's.
    share_usd: float | None = None
    # It was to go on in a session, and has not found it.
    lost_session: bool = False
    # The API served it no more.
    refusal: ApiRefusal | None = None

    @property
    def has_ended(self) -> bool:
        """It has answered its prompt, or given up."""
        return self.result or bool(self.failure)

    @property
    def is_too_costly(self) -> bool:
        return self.limit_usd is not None and self.cost_usd >= self.limit_usd

    @property
    def has_spent_share(self) -> bool:
        """The sum of two amounts is not always what it is on paper."""
        return self.share_usd is not None and self.cost_usd >= self.share_usd - 1e-9

    @property
    def through(self) -> bool:
        return self.result and not self.busy
