"""`ramherd attach JOB`: the session of a job on this terminal, in its worktree and in a pen."""

import argparse
import os
import shlex
import sys
from dataclasses import replace

from ramherd.act.worktrees.job_branch import find_branch, read_changes
from ramherd.act.worktrees.making import argv_in
from ramherd.agents import Launch, LaunchRequest, find_agent
from ramherd.agents.mcp_links import McpConfig, add_args, add_config
from ramherd.cli.exec import MEMORY_BYTES, add_session_flags, enter_session
from ramherd.cli.job_names import add_herd_option
from ramherd.cli.job_worktree import (
    finish_worktree,
    locked_worktree,
    read_ended_job,
    render_changes,
)
from ramherd.config.load import Config, make_policy
from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.model import Brief, Job
from ramherd.exec.session import print_line, run_session
from ramherd.show.event_lines import printable
from ramherd.store.herds import StoredJob
from ramherd.supervisor.agent_servers import granted_servers
from ramherd.system.ids import new_id

EPILOG = """\
examples:
  ramherd attach fix-lint

The agent's own program continues the session of the job, with its model, its
arguments and its permissions, and with the environment of this command. When
it has ended, its changes are committed to the job's branch: ramherd diff shows
them, ramherd merge merges them.

exit codes: those of ramherd exec (ramherd help exec)
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("job", metavar="JOB", help="its number or name")
    add_herd_option(parser)
    add_session_flags(parser)
    parser.set_defaults(verb=attach)


def attach(options: argparse.Namespace) -> int:
    stored = read_ended_job(options.job, options.herd)
    make_launch(stored)
    if not (os.isatty(0) and os.isatty(1)):
        raise UsageError(
            "attach needs a terminal", hint=f"without one: {stored.said.get('resume')}"
        )
    config = enter_session(options)
    with locked_worktree(stored), granted_servers(stored.job) as servers:
        launch = make_launch(stored, servers)
        finish_worktree(stored)
        warn_if_dropped(stored)
        code = run_launch(stored, launch, config)
        report(stored)
    return code


def warn_if_dropped(stored: StoredJob) -> None:
    """The session knows changes that are not there."""
    brief, said = stored.job.brief, stored.said
    if brief is None or brief.tree is None or said.get("branch") or not said.get("files_changed"):
        return
    start = f"is made again from {brief.tree.commit[:12]}, without the changes of the job"
    print_line(printable(f"the worktree of job {stored.job.name} was dropped: it {start}"))


def make_launch(stored: StoredJob, servers: McpConfig | None = None) -> Launch:
    brief, session = stored.job.brief, stored.said.get("session")
    if brief is None:
        raise UsageError(f"job {stored.job.name} is a command: it has no session")
    if not session:
        raise UsageError(f"job {stored.job.name} has no session: its agent did not open one")
    agent = find_agent(brief.agent)
    program = agent.find(os.environ.get("PATH", os.defpath), brief.program)
    request = add_args(make_request(brief, session, stored.said.get("model")), servers)
    launch = add_config(agent.attach(program, request), servers)
    if brief.tree is None:
        return launch
    return replace(launch, argv=argv_in(brief.tree, launch.argv))


def make_request(brief: Brief, session: str, model: str | None) -> LaunchRequest:
    return LaunchRequest(
        "", session, model=model or brief.model, args=brief.args,
        skip_permissions=brief.skip_permissions, allow=brief.allow,
    )  # fmt: skip


def run_launch(stored: StoredJob, launch: Launch, config: Config) -> int:
    """Returns the exit code. In the store the session is its own herd: the job keeps its end."""
    brief = stored.job.brief
    tree = brief.tree if brief is not None else None
    cwd = tree.repository if tree is not None else stored.job.cwd
    job = Job(
        id=new_id(),
        herd=new_id(),
        name=f"attach-{stored.job.name}",
        seq=0,
        argv=launch.argv,
        cwd=cwd,
        memory_bytes=config["memory"] or MEMORY_BYTES,
        memory_limit_bytes=config["memory_limit"] or stored.job.memory_limit_bytes,
    )
    try:
        os.chdir(cwd)
    except OSError as error:
        raise UsageError(f"the directory of job {stored.job.name} is gone: {cwd}") from error
    os.environ.update({name: v for name, v in launch.env.items() if name not in os.environ})
    return run_session(job, config["pen"], make_policy(config))


def report(stored: StoredJob) -> None:
    """On stderr: a session leaves no other output. Signals that end programs wait until then."""
    name, brief = stored.job.name, stored.job.brief
    assert brief is not None
    if brief.tree is None:
        return
    try:
        finish_worktree(stored)
        changes = read_changes(find_branch(name, brief.tree))
    except UsageError:
        print_line(printable(f"{name}: nothing is changed"))
        return
    except RamherdError as error:
        print_line(printable(f"{name}: {error}"))
        return
    quoted = shlex.quote(name)
    print_line(printable(f"{name}: {render_changes(changes)} in branch {brief.tree.branch}"))
    print_line(printable(f"to see or merge them: ramherd diff {quoted}, ramherd merge {quoted}"))
    sys.stderr.flush()
