"""The keys of a job, for type checkers. Generated from jobs/schema.py."""

from collections.abc import Mapping, Sequence
from typing import TypedDict


class NewJob(TypedDict, total=False):
    """A job for `Client.submit`: what a [[job]] table of a file has."""

    # name, unique in its herd; job-N if not given
    name: str
    # the [profile.NAME] of the settings to use
    profile: str
    # agent that gets the prompt: claude, codex, ...
    agent: str
    # what the agent is asked to do
    prompt: str
    # working directory
    cwd: str
    # environment variables to add
    env: Mapping[str, str]
    # program and arguments, or a line for the shell
    command: str | Sequence[str]
    # command that continues a run which was stopped to free memory
    resume_command: str | Sequence[str]
    # text for standard input
    stdin: str
    # command that is started when the job has ended
    on_done: str | Sequence[str]
    # jobs with a higher number start first
    priority: int
    # jobs that must be done first
    after: str | Sequence[str]
    # jobs with one label share what ramherd learns about their memory
    label: str
    # memory reserved for a run from its start; if not given, learned
    memory: str | int
    # memory a run may never exceed
    memory_limit: str | int
    # longest time a run may take, without the time it is queued or held
    timeout: str | float
    # how often a failed job is tried again
    retries: int
    # program of the agent, if not the one in PATH
    agent_program: str
    # additional arguments for the agent
    agent_args: str | Sequence[str]
    # model of the agent; if not given, the agent decides
    model: str
    # model while memory is very short, or at a usage limit
    fallback_model: str
    # at a usage limit: wait, fail, or use fallback_model
    on_limit: str
    # the agent uses tools without asking
    skip_permissions: bool
    # run in a git worktree; if not given, when jobs share a repository
    worktree: bool
    # commit that the worktree starts from, instead of the branches of `after`
    base: str
    # number of jobs that share a warm process, one after another
    reuse: int
    # what the job's agent may cost
    max_cost_usd: float
    # MCP servers of the agent, shared through the gateway; * for all
    mcp: str | Sequence[str]
