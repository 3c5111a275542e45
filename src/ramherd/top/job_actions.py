"""What the keys do to a job, through the client that the verbs use; each returns a sentence."""

from collections.abc import Callable

from ramherd.client.client import Client, is_running
from ramherd.core.errors import NoService, RamherdError
from ramherd.top.reading import Job
from ramherd.top.verb_process import run_verb


def name_job(job: Job) -> str:
    """As verbs take it: the number is unique over all herds."""
    return str(job["number"]) if job["number"] is not None else str(job["id"])


def cancel(job: Job) -> str:
    Client().cancel(job["id"])
    return f"{job['name']} is being cancelled"


def recycle(job: Job) -> str:
    Client().recycle(job["id"])
    return f"{job['name']} is being restarted in the same session"


def pause(job: Job) -> str:
    Client().pause(job["id"])
    return f"{job['name']} is paused"


def resume(job: Job) -> str:
    Client().resume(job["id"])
    return f"{job['name']} is no longer paused"


def pause_all() -> str:
    Client().pause()
    return "the service is paused: no job starts"


def resume_all() -> str:
    Client().resume()
    return "the service starts jobs again"


def retry(job: Job) -> str:
    """Without a service the verb would run the job itself, until its end."""
    return retry_with(job, ())


def allow(job: Job) -> str:
    return retry_with(job, find_rules(job))


def retry_with(job: Job, rules: tuple[str, ...]) -> str:
    if not is_running():
        hint = f"in another terminal: ramherd retry {name_job(job)}"
        raise NoService("no service is running", hint=hint)
    flags = [word for rule in rules for word in ("--allow", rule)]
    done = run_verb(["retry", name_job(job), *flags])
    if done.code:
        raise RamherdError(done.last_line)
    return f"{job['name']} is queued again"


def find_rules(job: Job) -> tuple[str, ...]:
    """Rules that allow what the agent was denied."""
    rules = (one["allow"] for one in job["denied"] or () if one["allow"])
    return tuple(dict.fromkeys(rules))


def describe_error(error: RamherdError) -> str:
    return f"{error} ({error.hint})" if error.hint else str(error)


Act = Callable[[], str]
