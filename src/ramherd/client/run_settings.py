"""The settings of a run, for type checkers. Generated from config/keys.py."""

from collections.abc import Sequence
from typing import TypedDict


class RunSettings(TypedDict, total=False):
    """The settings of `ramherd.run`: the flags of `ramherd run`. None is the same as not given."""

    # memory that all runs together may use at most
    budget: str | int | None
    # share of the memory of the machine that runs may use
    budget_share: float | None
    # runs at a time; if not given, memory decides
    max_parallel: int | None
    # begin with N runs, and add N after each step without trouble
    ramp: int | None
    # the [profile.NAME] of the settings to use
    profile: str | None
    # agent that gets the prompt: claude, codex, ...
    agent: str | None
    # memory reserved for a run from its start; if not given, learned
    memory: str | int | None
    # memory a run may never exceed
    memory_limit: str | int | None
    # longest time a run may take, without the time it is queued or held
    timeout: str | float | None
    # how often a failed job is tried again
    retries: int | None
    # program of the agent, if not the one in PATH
    agent_program: str | None
    # additional arguments for the agent
    agent_args: str | Sequence[str] | None
    # model of the agent; if not given, the agent decides
    model: str | None
    # model while memory is very short, or at a usage limit
    fallback_model: str | None
    # at a usage limit: wait, fail, or use fallback_model
    on_limit: str | None
    # the agent uses tools without asking
    skip_permissions: bool | None
    # run in a git worktree; if not given, when jobs share a repository
    worktree: bool | None
    # number of jobs that share a warm process, one after another
    reuse: int | None
    # MCP servers of the agent, shared through the gateway; * for all
    mcp: str | Sequence[str] | None
    # time a run waits for memory before the youngest run is stopped
    patience: str | float | None
    # time after which a run that waits for memory is stopped itself
    max_hold: str | float | None
    # size at which a leaking run is restarted
    recycle_at: str | int | None
    # CPU pressure above which no run is started, or none
    max_cpu_pressure: str | float | None
    # time between TERM and KILL
    grace: str | float | None
    # how the memory of runs is limited: auto, cgroup2, cgroup1, polling
    pen: str | None
    # fail at once when memory is short (exit 3)
    no_wait: bool | None
    # processes in one run at most (cgroup pens)
    pids_limit: int | None
    # size kept from the start of each output stream
    log_head: str | int | None
    # size kept from the end of each output stream
    log_ring: str | int | None
    # size of all output; the oldest of finished runs is removed
    log_total: str | int | None
    # size above which a warm process is not used again
    reuse_size: str | int | None
    # age above which a warm process is not used again
    reuse_age: str | float | None
    # time a warm process waits for its next job
    reuse_idle: str | float | None
    # maximum cost of all agents of a herd
    max_cost_usd: float | None
    # variables that runs inherit, such as PATH, HOME, ANTHROPIC_*; if not given, all
    pass_env: str | Sequence[str] | None
    # command to run when a herd has ended
    on_done: str | None
    # command to run for each alert
    on_alert: str | None
    # time without output after which an agent is reported; 0 is never
    stall_after: str | float | None
    # agents without `mcp` get all MCP servers of the gateway
    mcp_share: bool | None
    # a notice on the desktop at the end of a herd, or the bell
    notify: bool | None
    # for benchmarks: agents run N times faster
    time_scale: float | None
    # for benchmarks: agents are N times smaller
    size_scale: float | None
