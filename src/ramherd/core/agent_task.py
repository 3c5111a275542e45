"""The task of an agent and the report of its work. Nothing here depends on a particular agent."""

from ramherd.core.record import record

# Fields of a job's agent and worktree in results and lists. A plain command only has `error`; a
# field that is not known is None.
SAID = (
    "session", "turns", "tokens_in", "tokens_out", "cost_usd", "cost_is_estimate", "result",
    "model", "worktree", "branch", "files_changed", "lines_added", "lines_removed", "denied",
    "error", "resume", "left_out", "worktree_note", "fallback", "merged_into",
)  # fmt: skip


# Longer commands and paths are cut in lists of tool calls.
CALL_LENGTH = 40


def name_call(tool: str, what: str) -> str:
    """`Bash(npm test)`. A long path keeps its end, a long command its beginning."""
    if len(what) > CALL_LENGTH:
        kept = CALL_LENGTH - 3
        what = f"...{what[-kept:]}" if what.startswith("/") else f"{what[:kept]}..."
    return f"{tool}({what})" if what else tool


@record
class Tree:
    """The worktree of one job: its repository, start commit and branch. `inside` is the job's
    directory below the root of the repository. `parents` are the jobs whose branches the worktree
    starts from; it is empty once they are merged into `commit`.
    """

    repository: str
    commit: str
    path: str
    branch: str
    inside: str = ""

    @property
    def directory(self) -> str:
        """The working directory of the job."""
        return f"{self.path}/{self.inside}" if self.inside not in ("", ".") else self.path

    parents: tuple[str, ...] = ()


@record
class MergedBase:
    """The result of merging the branches that a job starts from: the commit, or the error. `ours`
    and `theirs` are the jobs whose branches conflict in `files`; `path` is the worktree of `ours`,
    `branch` the branch of `theirs`.
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
    """A prompt for an agent. `program` is the setting that replaces the program found in PATH."""

    agent: str
    prompt: str
    model: str = ""
    fallback_model: str = ""
    max_cost_usd: float | None = None
    skip_permissions: bool = False
    program: str = ""
    # None: only if other jobs of the herd work in the same repository.
    worktree: bool | None = None
    # The commit that the worktree starts from, as the user wrote it; then `after` is order only.
    base: str = ""
    tree: Tree | None = None
    # The number of jobs that share a process, one after another.
    reuse: int = 0
    # Arguments from the user for the agent.
    args: tuple[str, ...] = ()
    # Tools that the user has allowed later (`ramherd retry --allow`).
    allow: tuple[str, ...] = ()
    on_limit: str = "wait"
    # The MCP servers that the agent gets instead of its own, through the gateway; ALL_SERVERS for
    # all that the gateway has. None: the agent keeps its own.
    mcp: tuple[str, ...] | None = None
    # A hash of the key or the configuration directory that selects the account at the API.
    account: str = ""


ALL_SERVERS = "*"
# How a job reacts to a usage limit: it waits, fails, or continues with `fallback_model` if the
# limit applies only to its model.
WAIT, FAIL, FALLBACK = "wait", "fail", "fallback_model"
ON_LIMIT = (WAIT, FAIL, FALLBACK)
# Stands for the model of the refused run if the API does not name the model.
THIS_MODEL = "this model"
# The window of an account that the API does not serve at all: no key, no login or no credit.
NO_ACCESS = "no_access"


WINDOW_NAMES = {
    "five_hour": "five-hour window", "seven_day": "weekly limit", "day": "daily quota",
    "seven_day_opus": "weekly Opus limit", "seven_day_sonnet": "weekly Sonnet limit",
    "month": "monthly limit", "overage": "extra usage", "": "usage limit",
}  # fmt: skip


def name_window(window: str) -> str:
    """The common name of a window."""
    return WINDOW_NAMES.get(window, window)


@record
class ApiRefusal:
    """The API has stopped serving an account for now. `window` is the API's name of the limit
    (`five_hour`, `seven_day_opus`), "" if it is not known, or NO_ACCESS. `model` is set if the
    limit applies to one model only; `until_s` is epoch seconds.
    """

    what: str
    window: str = ""
    until_s: float | None = None
    model: str = ""


@record
class Said:
    """The agent's own report of its work so far."""

    result: bool = False
    busy: bool = False  # tools of the agent are still running, whatever it reported
    needs_result: bool = True
    failure: str = ""
    overloaded: bool = False
    # The cost of the job so far, and its limit.
    cost_usd: float = 0.0
    limit_usd: float | None = None
    # The share of the herd's money that was passed to the run.
    share_usd: float | None = None
    # The agent did not find the session that it was to resume.
    lost_session: bool = False
    # The API stopped serving the agent.
    refusal: ApiRefusal | None = None

    @property
    def has_ended(self) -> bool:
        """The agent has answered its prompt or given up."""
        return self.result or bool(self.failure)

    @property
    def is_too_costly(self) -> bool:
        return self.limit_usd is not None and self.cost_usd >= self.limit_usd

    @property
    def has_spent_share(self) -> bool:
        """The tolerance covers rounding errors of a sum of two amounts."""
        return self.share_usd is not None and self.cost_usd >= self.share_usd - 1e-9

    @property
    def through(self) -> bool:
        return self.result and not self.busy
