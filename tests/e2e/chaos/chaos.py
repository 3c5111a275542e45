"""Chaos: thirty jobs, and a service that is killed again and again at random instants.

    python -m e2e.chaos.chaos --rounds 200 --keeper-kills 100 --seed 7

A round is one kill, of the service or also of its keeper, and one start. Then the keeper alone is
killed under a service that lives. Each job takes a lock
that only one process can have: a second run of the same job at the same time would say so. Every
third is an agent, which has to go on in the session that it was in.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from integration.conftest import make_ramherd, ours, pens
from integration.service.conftest import Service, finish

JOBS = 30
KILLS_A_HERD = 50
AGENT = (
    "exec 9>>{here}/$RAMHERD_JOB.lock; flock -n 9 || echo $RAMHERD_JOB >> {here}/twice; "
    "sleep {sleep}; echo $RAMHERD_ATTEMPT; echo $RAMHERD_JOB >> {here}/ended; exit 0"
)
TALKER = """\
#!/bin/sh
for word; do
    case "$before" in --session-id | --resume) how=$before session=$word ;; esac
    before=$word
done
cat > /dev/null
exec 9>>HERE/$RAMHERD_JOB.lock
flock -n 9 || echo $RAMHERD_JOB >> HERE/twice
echo "$RAMHERD_JOB $how $session" >> HERE/sessions
echo '{"type": "system", "subtype": "init", "session_id": "'$session'"}'
sleep $NAP
echo '{"type": "result", "result": "Through.", "total_cost_usd": 0.01}'
"""


def herd_of(here: Path, chance: random.Random) -> list[dict[str, object]]:
    program = here / "talker"
    program.write_text(TALKER.replace("HERE", str(here)))
    program.chmod(0o755)
    return [
        {"name": f"job-{number}", "memory": "16MiB", "cwd": "/", **work_of(number, here, chance)}
        for number in range(JOBS)
    ]


def work_of(number: int, here: Path, chance: random.Random) -> dict[str, object]:
    sleep = round(chance.uniform(0.05, 1.5), 2)
    if number % 3:
        return {"command": AGENT.format(here=here, sleep=sleep)}
    program = str(here / "talker")
    asked = {"agent": "claude", "prompt": "do it", "agent_program": program}
    return {**asked, "env": {"NAP": str(sleep)}}


def run_chaos(here: Path, rounds: int, seed: int, pen: str) -> dict[str, int]:
    """What was counted; what must not be is asserted."""
    chance = random.Random(seed)
    service = Service(make_ramherd(here, pen), ("--max-parallel", "10"))
    service.start()
    counted = {"rounds": 0, "keepers": 0, "herds": 0, "adopted": 0}
    while counted["rounds"] < rounds:
        herd = service.submit(*herd_of(here, chance))
        counted["herds"] += 1
        for _kill in range(min(rounds - counted["rounds"], KILLS_A_HERD)):
            if chance.random() < 0.7:
                wait_ready(service)
            time.sleep(chance.uniform(0.0, 0.8))
            both = chance.random() < 0.2
            kill(service, both=both)
            counted["rounds"] += 1
            counted["keepers"] += both
            service.start(ready=False)
        wait_ready(service)
        check(service, herd, here)
    counted["adopted"] = service.rows("SELECT count(*) FROM events WHERE kind = 'run_adopted'")[0][
        0
    ]
    finish(service)
    return counted


def run_keeper_chaos(here: Path, kills: int, seed: int, pen: str) -> dict[str, float]:
    """Kills of the keeper alone. No job fails for that, however often it is hit: asserted."""
    chance = random.Random(seed)
    service = Service(make_ramherd(here, pen), ("--max-parallel", "10"))
    service.start()
    counted: dict[str, float] = {"keeper_kills": 0, "herds": 0}
    began_s = time.monotonic()
    while counted["keeper_kills"] < kills:
        herd = service.submit(*herd_of(here, chance))
        counted["herds"] += 1
        while counted["keeper_kills"] < kills and not service.client.herd(herd)["ended_s"]:
            time.sleep(chance.uniform(0.0, chance.choice((0.5, 3.0))))
            for pid in service.keepers():
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)
                    counted["keeper_kills"] += 1
        check(service, herd, here)
    wall_s = round(time.monotonic() - began_s, 1)
    ((runs, lost),) = service.rows("SELECT count(*), sum(\"end\" = 'lost') FROM runs")
    ((failed,),) = service.rows("SELECT count(*) FROM jobs WHERE state = 'failed'")
    finish(service)
    return {**counted, "runs": runs, "lost": lost, "wrongly_failed": failed, "wall_s": wall_s}


def kill(service: Service, *, both: bool) -> None:
    keepers = service.keepers() if both else []
    service.kill()
    for pid in keepers:
        with suppress(ProcessLookupError):
            os.kill(pid, 9)


def wait_ready(service: Service) -> None:
    deadline = time.monotonic() + 30
    while not service.is_up(service.process):
        assert time.monotonic() < deadline, service.said
        time.sleep(0.05)


def check(service: Service, herd: str, here: Path) -> None:
    """Every job done, once, and none twice at a time; a run that ended stays ended."""
    found = service.client.wait(herd)
    assert found["counts"] == {"done": JOBS}, (found, service.said)
    twice = here / "twice"
    assert not twice.exists(), twice.read_text()
    done = service.rows(
        "SELECT job, count(*) FROM runs JOIN jobs ON jobs.id = runs.job "
        f"WHERE herd = '{herd}' AND end = 'done' GROUP BY job"
    )
    assert sorted(number for _job, number in done) == [1] * JOBS
    assert service.rows("SELECT count(*) FROM runs WHERE ended_s IS NULL") == [(0,)]
    check_sessions(service, herd, here)


def check_sessions(service: Service, herd: str, here: Path) -> None:
    """One that is resumed is the one before it, and what the agent said came through."""
    last: dict[str, str] = {}
    for line in (here / "sessions").read_text().splitlines():
        job, how, session = line.split()
        assert how == "--session-id" or session == last[job], (line, last[job])
        last[job] = session
    for found in service.client.jobs(herd):
        if found["turns"] is not None:
            said = (found["result"], found["session"], found["cost_usd"])
            assert said == ("Through.", last[found["id"]], 0.01), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--keeper-kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as here:
        if options.rounds:
            print(run_chaos(Path(here), options.rounds, options.seed, pens()[0]), flush=True)
    with tempfile.TemporaryDirectory() as here:
        if options.keeper_kills:
            print(run_keeper_chaos(Path(here), options.keeper_kills, options.seed, pens()[0]))
    sys.exit(1 if ours() else 0)


if __name__ == "__main__":
    main()
