"""ramherd runs as many coding agents as the memory holds, and never one more.

From Python: `ramherd.run(jobs)`, `await ramherd.run_async(jobs)`, and `ramherd.Client` for the
service (docs/python.md). Kept free of imports: the keeper and the hook load this file, and their
memory counts. What a script asks for is loaded when it does.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramherd.client.client import Client as Client
    from ramherd.client.herd_result import HerdResult as HerdResult
    from ramherd.client.herd_result import JobResult as JobResult
    from ramherd.client.new_job import NewJob
    from ramherd.client.run_jobs import run as run
    from ramherd.client.run_jobs import run_async as run_async
    from ramherd.core.errors import LimitTooLow as LimitTooLow
    from ramherd.core.errors import NoPen as NoPen
    from ramherd.core.errors import NoRoom as NoRoom
    from ramherd.core.errors import NoService as NoService
    from ramherd.core.errors import RamherdError as RamherdError
    from ramherd.core.errors import ServiceBusy as ServiceBusy
    from ramherd.core.errors import StoreError as StoreError
    from ramherd.core.errors import UsageError as UsageError
    from ramherd.core.errors import WaitTimeout as WaitTimeout

    Job = NewJob

__version__ = "0.1.0"
# Each name that is offered, and where it is defined.
_OFFERED = {
    "Client": "client.client.Client",
    "HerdResult": "client.herd_result.HerdResult",
    "Job": "client.new_job.NewJob",
    "JobResult": "client.herd_result.JobResult",
    "LimitTooLow": "core.errors.LimitTooLow",
    "NoPen": "core.errors.NoPen",
    "NoRoom": "core.errors.NoRoom",
    "NoService": "core.errors.NoService",
    "RamherdError": "core.errors.RamherdError",
    "ServiceBusy": "core.errors.ServiceBusy",
    "StoreError": "core.errors.StoreError",
    "UsageError": "core.errors.UsageError",
    "WaitTimeout": "core.errors.WaitTimeout",
    "run": "client.run_jobs.run",
    "run_async": "client.run_jobs.run_async",
}
__all__ = [*_OFFERED]  # noqa: PLE0604 - the names are text


def __getattr__(name: str) -> object:
    if name not in _OFFERED:
        raise AttributeError(f"module 'ramherd' has no attribute {name!r}")
    module, _, attribute = _OFFERED[name].rpartition(".")
    return getattr(__import__(f"ramherd.{module}", fromlist=[attribute]), attribute)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
