"""What ten thousand queued jobs cost a service: time to submit, to list and to claim, memory.

python -m bench.ten_thousand
"""

import json
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from integration.conftest import make_ramherd, ours, pens
from integration.service.conftest import Service, finish, rss
from ramherd.core.model import Job, JobState
from ramherd.store.herds import set_job
from ramherd.store.service_queue import ServiceQueue
from ramherd.store.service_requests import submit
from ramherd.store.sqlite import SqliteStore

MANY, FEW = 10_000, 100
CLAIMS = 50


def measure_claims(here: Path, number: int) -> float:
    """Milliseconds of CPU to claim one job: the head of the line, and its new state on disk."""
    path = here / f"{number}.db"
    jobs = [
        Job(f"id-{n:05}", "H", f"job-{n}", n, ("true",), "/", 16 << 20)
        for n in range(1, number + 1)
    ]
    with closing(SqliteStore(path)) as store:
        submit(store, store.path.parent, "H", jobs, None)
        backlog = ServiceQueue(store)
        began = time.process_time()
        for _claim in range(CLAIMS):
            backlog.refill()
            for status in backlog.change(replace(backlog.queue[0], state=JobState.RUNNING)):
                set_job(store, status)
            store.commit()
        return 1000 * (time.process_time() - began) / CLAIMS


def measure_service(here: Path) -> dict[str, float]:
    service = Service(make_ramherd(here, pens()[0]))
    service.start()
    service.client.pause()
    lines = "".join(
        json.dumps({"name": f"job-{n}", "command": ["true"], "cwd": "/"}) + "\n"
        for n in range(MANY)
    )
    began = time.monotonic()
    done = service.ramherd.run("submit", "-", stdin=lines)
    submitted_s = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    began = time.monotonic()
    listed = service.ramherd.run("jobs")
    listed_s = time.monotonic() - began
    assert listed.stdout.endswith(f"{MANY} queued\n")
    api = next(pid for pid in ours() if b"api/__main__.py" in read_command(pid))
    sizes = {"service_rss_mb": rss(service.process.pid) / 1e6, "api_rss_mb": rss(api) / 1e6}
    service.client.cancel_herd(done.stdout.strip())
    service.client.wait(done.stdout.strip())
    cancelled_s = time.monotonic() - began - listed_s
    after = rss(service.process.pid) / 1e6
    finish(service)
    return {
        "submit_s": submitted_s, "jobs_s": listed_s, **sizes, "cancel_all_s": cancelled_s,
        "service_rss_after_mb": after,
    }  # fmt: skip


def read_command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def main() -> None:
    with tempfile.TemporaryDirectory() as here:
        for number in (FEW, MANY):
            print(f"claim with {number} jobs: {measure_claims(Path(here), number):.2f} ms of CPU")
        for name, value in measure_service(Path(here)).items():
            print(f"{name}: {value:.2f}")


if __name__ == "__main__":
    main()
