"""The verbs, by purpose: `ramherd --help`, the shell completions and the manual pages are made from
this table. The options and examples of a verb are in its own file, of the same name.

Nothing is imported here: every start reads this file.
"""

GROUPS = {
    "run jobs": {
        "run": "run jobs and wait for them",
        "submit": "give jobs to the service and return",
        "exec": "run one program on this terminal within a memory limit",
        "drill": "run fake agents, to see ramherd at work",
        "plan": "how many agents fit, at which risk, and what to do",
        "simulate": "replay recorded memory use against the scheduler, in seconds",
    },
    "see what happens": {
        "top": "watch runs, queue, memory and strays, and act on them",
        "status": "print the budget, what runs and waits, limits and warnings",
        "jobs": "list jobs, and what each waits for",
        "wait": "wait until jobs or herds have ended",
        "logs": "print the output of jobs",
        "events": "print what was decided, and why",
        "history": "print the memory use learned from earlier runs",
    },
    "change what is queued or running": {
        "cancel": "cancel a job or a herd",
        "retry": "run a failed job again",
        "recycle": "restart a job's agent in the same session",
        "edit": "change the priority or memory of a queued job",
        "pause": "start no more jobs, or not this one",
        "resume": "start jobs again after a pause",
    },
    "use the results": {
        "results": "print the result of each job of a herd",
        "show": "print everything about one job",
        "diff": "show the changes of a job",
        "merge": "merge the changes of jobs into your branch",
        "drop": "remove the worktree and branch of a job",
        "attach": "continue a job's session on this terminal",
    },
    "service": {
        "up": "start the service, which runs submitted jobs",
    },
    "this machine": {
        "ps": "list agents, MCP servers and their tools, with their memory",
        "watch": "keep a census of agents for 7 days, and alert while they grow",
        "reap": "end processes that agents left behind (a dry run without --yes)",
        "mcp": "share MCP servers between agents",
        "hook": "make the subagents of Claude Code wait for memory",
        "doctor": "check this machine, and say what to change",
        "prune": "remove the output of finished runs",
    },
    "settings and help": {
        "config": "print each setting and its source",
        "completion": "print the completion script for a shell",
        "help": "print the options and examples of a verb",
    },
}  # fmt: skip
VERBS = {verb: what for group in GROUPS.values() for verb, what in group.items()}
# For benchmarks and experiments: `ramherd --help-all` lists them.
RARE_VERBS = ("simulate",)
# Called by shell scripts at Tab; not a verb for users.
COMPLETE = "__complete"
# They start no MCP gateway for the user's own sessions.
WITHOUT_GATEWAY = ("mcp", "exec", "help", "completion", "config")
# Words after `--` are the user's command.
WITH_COMMAND = ("run", "submit", "exec")
