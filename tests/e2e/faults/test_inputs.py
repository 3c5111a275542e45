"""What jobs are given: secrets in their environment stay out of the store, and large inputs out of
the memory of the service.
"""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from integration.conftest import await_, ours
from integration.service.conftest import Service, is_program, rss
from integration.service.talker import Talker
from ramherd.core.units import MIB

from .conftest import Losses, make_service

CANARY = b"canary-of-the-test-0123456789"
SLOW = "while [ ! -e {gate} ]; do sleep 0.05; done; "


def files_with(folder: Path, secret: bytes) -> list[Path]:
    """Files that have it in some byte: the store, its log, events, logs of runs, all of them."""
    found = []
    for path in folder.rglob("*"):
        try:
            if path.is_file() and secret in path.read_bytes():
                found.append(path)
        except FileNotFoundError:
            continue
    return found


def secret_env(service: Service) -> dict[str, str]:
    return {**service.ramherd.env, "API_KEY": CANARY.decode()}


def submit_with(service: Service, env: dict[str, str], *jobs: dict[str, Any]) -> str:
    return service.client.submit([{"cwd": "/", **job} for job in jobs], env=env)


def test_an_environment_is_in_one_file_and_gone_with_its_herd(
    service: Service, losses: Losses, tmp_path: Path
) -> None:
    """While the herd lives only its 0600 file has it: neither store nor log, event or output."""
    state, gate = service.ramherd.state, tmp_path / "gate"
    command = f'{SLOW.format(gate=gate)} test "$API_KEY" = {CANARY.decode()[:6]}"${{REST}}"'
    rest = {"REST": CANARY.decode()[6:], "OWN": CANARY.decode()}
    herd = submit_with(
        service, secret_env(service),
        {"name": "a", "command": command, "env": rest},
        {"name": "b", "command": "true", "after": "a"},
    )  # fmt: skip
    service.await_state("a", "running")

    holders = files_with(state, CANARY)
    assert [path.parent.name for path in holders] == ["environments"]
    assert holders[0].stat().st_mode & 0o777 == 0o600
    service.kill()
    service.start()
    service.await_state("a", "running")
    assert files_with(state, CANARY) == holders
    gate.touch()
    service.client.wait(herd)

    assert service.client.herd(herd)["counts"] == {"done": 2}
    await_(lambda: not holders[0].exists(), "the environment is removed")
    losses(
        "a secret in the environment of a herd that has ended",
        copies_on_disk=len(files_with(state.parent, CANARY)),
    )


def test_what_a_killed_service_left_is_removed_by_the_next(
    service: Service, losses: Losses, tmp_path: Path
) -> None:
    """An environment whose herd has ended, and one that never got a herd."""
    state = service.ramherd.state / "ramherd"
    gate = tmp_path / "gate"
    herd = submit_with(
        service, secret_env(service), {"name": "a", "command": SLOW.format(gate=gate) + "true"}
    )
    service.await_state("a", "running")
    (held,) = (state / "environments").iterdir()
    copy = state / "environments" / "01ORPHAN"
    copy.write_bytes(held.read_bytes())
    service.kill_with_keepers()
    with closing(sqlite3.connect(state / "ramherd.db")) as db, db:
        db.execute("UPDATE herds SET ended_s = 1 WHERE id = ?", (herd,))
        db.execute("UPDATE jobs SET state = 'cancelled'")
    service.start()

    losses(
        "a service killed before it removed an environment", files=len(files_with(state, CANARY))
    )


def test_a_store_of_an_earlier_ramherd_is_scrubbed(losses: Losses, tmp_path: Path) -> None:
    """Its environments were rows: those of open herds are moved, all others overwritten."""
    service = make_service(tmp_path)
    service.start()
    service.client.pause()
    submit_with(service, secret_env(service), {"name": "a", "command": 'test -n "$API_KEY$OWN"'})
    service.stop()
    state = service.ramherd.state / "ramherd"
    turn_back(state, service.ramherd.env)
    assert files_with(state, CANARY) == [state / "ramherd.db"]

    service.start()
    assert {path.parent.name for path in files_with(state, CANARY)} == {"environments"}
    service.client.resume()
    service.await_state("a", "done")
    await_(lambda: not list((state / "environments").iterdir()), "the environment is removed")
    assert service.stop() == 0
    losses("secrets in the store of an earlier ramherd", copies=len(files_with(state, CANARY)))


def turn_back(state: Path, env: dict[str, str]) -> None:
    """As it was: one open herd with an environment, one that has ended, one that was deleted."""
    for path in (state / "environments").iterdir():
        path.unlink()
    text = json.dumps({**env, "API_KEY": CANARY.decode()})
    with closing(sqlite3.connect(state / "ramherd.db")) as db, db:
        db.execute("UPDATE herds SET env = ?, env_file = NULL, env_bytes = NULL", (text,))
        db.execute(
            "UPDATE jobs SET spec = json_set(spec, '$.env', json(?))",
            (json.dumps({"OWN": CANARY.decode()}),),
        )
        columns = "created_s, ended_s, owner, boot_id, pid, start_ticks, service, env"
        for herd in ("00ENDED", "00DELETED"):
            db.execute(
                f"INSERT INTO herds (id, {columns}) SELECT ?, 1, 1, owner, boot_id, pid,"
                " start_ticks, 1, env FROM herds LIMIT 1",
                (herd,),
            )
        db.execute("DELETE FROM herds WHERE id = '00DELETED'")
        db.execute("DELETE FROM flags WHERE name = 'environments_moved'")


def test_a_retry_after_the_end_gets_the_environment_of_its_caller(
    service: Service, losses: Losses
) -> None:
    """Variables of the job itself are named if they are not in it."""
    herd = submit_with(
        service, service.ramherd.env,
        {"name": "a", "command": 'test "$COLOUR" = red', "env": {"COLOUR": "blue"}},
    )  # fmt: skip
    service.client.wait(herd)
    await_(lambda: not list((service.ramherd.state / "ramherd/environments").iterdir()), "removed")

    refused = service.ramherd.run("retry", "a")
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        "ramherd: the variables of job 'a' were removed when its herd ended: COLOUR",
        "  hint: COLOUR=... ramherd retry a",
    ]
    service.ramherd.env["COLOUR"] = "red"
    assert service.ramherd.run("retry", "a").returncode == 0
    service.client.wait(herd)
    losses("a retry of a herd whose environment is gone", failed=int(service.state("a") != "done"))


def test_only_what_pass_env_names_is_passed(service: Service, losses: Losses) -> None:
    """By the service and by a herd of `ramherd run`."""
    service.ramherd.env |= {"API_KEY": CANARY.decode(), "ANTHROPIC_URL": "x"}
    script = 'test "$ANTHROPIC_URL" = x -a -z "$API_KEY"'
    jobs = json.dumps({"name": "a", "command": script})
    flags = ("--pass-env", "PATH, HOME, ANTHROPIC_*, RAMHERD_TEST")
    ends = [
        service.ramherd.run(verb, "-", *more, *flags, stdin=jobs).returncode
        for verb, *more in (("submit", "--wait"), ("run", "--own"))
    ]

    losses("variables that pass_env does not name", failed=sum(map(bool, ends)))


def test_large_inputs_are_files(service: Service, losses: Losses, tmp_path: Path) -> None:
    """5 MB of input, 1.8 MB of arguments and environment: neither service nor API keeps them."""
    gate = tmp_path / "gate"
    words = ["x" * 100_000] * 9
    big = {f"BIG{n}": "y" * 100_000 for n in range(9)}
    script = (
        f"{SLOW.format(gate=gate)} test $(wc -c) -eq 5000000 -a $# -eq 9 -a ${{#BIG8}} -eq 100000"
    )
    jobs = [
        {"name": f"j{n}", "command": ["sh", "-c", script, "sh", *words], "stdin": "z" * 5_000_000}
        for n in range(3)
    ]
    herd = submit_with(service, {**service.ramherd.env, **big}, *jobs)
    for job in jobs:
        service.await_state(str(job["name"]), "running")
    inputs = service.ramherd.state / "ramherd/inputs"
    assert sorted(path.name for path in inputs.rglob("*") if path.is_file()) == sorted(
        ["argv", "stdin"] * 3
    )
    assert {path.stat().st_mode & 0o777 for path in inputs.rglob("*") if path.is_file()} == {0o600}
    sizes = {name: rss(pid) for name, pid in processes(service).items()}
    service.kill()
    service.start()
    gate.touch()
    service.client.wait(herd)

    assert service.client.herd(herd)["counts"] == {"done": 3}
    await_(lambda: not list(inputs.iterdir()), "the inputs of jobs that are done are removed")
    after = {name: rss(pid) for name, pid in processes(service).items() if name != "keeper"}
    losses(
        "5 MB of input, 2 MB of arguments and environment",
        service_over_32_mb=int(max(sizes["service"], after["service"]) > 32 * 10**6),
        api_over_48_mb=int(max(sizes["api"], after["api"]) > 48 * 10**6),
        keeper_over_16_mib=int(sizes["keeper"] > 16 * MIB),
        jobs=3 - service.client.herd(herd)["counts"]["done"],
    )
    print(sizes, after)


def processes(service: Service) -> dict[str, int]:
    """Service, API and keeper."""
    children = [pid for pid in ours() if pid != service.process.pid]
    api = next(pid for pid in children if is_program(pid, b"api/__main__.py"))
    keeper = next((pid for pid in children if is_program(pid, b"keeper/__main__.py")), 0)
    return {"service": service.process.pid, "api": api, "keeper": keeper}


def test_what_the_kernel_does_not_take_is_one_line(service: Service, losses: Losses) -> None:
    """Which argument or variable, how large it is, and the limit."""
    one = json.dumps({"name": "a", "command": ["true", "x" * 200_000]})
    refused = [
        service.ramherd.run(*verb, "-", stdin=one) for verb in (["submit"], ["run", "--own"])
    ]
    for done in refused:
        assert done.returncode == 2
        assert done.stderr.splitlines()[0] == (
            "ramherd: standard input: job 1 (a), key 'command': argument 1 has 200,000 bytes, the "
            "kernel takes 131,071 at most"
        )
    service.submit({"name": "sum", "command": ["true", *["x" * 100_000] * 70]})
    service.await_state("sum", "failed")
    why = str(service.job("sum")["reason"])
    assert "arguments (7,000,6" in why, why
    assert "together, the kernel takes 2,097,152 at most; the largest variable is " in why, why
    losses("arguments above the limits of the kernel", unclear=0)


def test_bytes_that_are_no_text_pass_unchanged(
    service: Service, losses: Losses, tmp_path: Path
) -> None:
    """In variables, arguments and the working directory, by `submit` and by `run`."""
    lost = 0
    here = os.fsencode(tmp_path) + b"/\xff\xe9"
    os.mkdir(here)
    for number, verb in enumerate((["submit", "--wait"], ["run", "--own"])):
        out = tmp_path / f"out{number}"
        script = f"""printf '%s|' "$RAW" "$1" > {out}; pwd >> {out}"""
        env = {os.fsencode(k): os.fsencode(v) for k, v in service.ramherd.env.items()}
        done = run_raw(
            [*verb, "--cwd", here, "--", "sh", "-c", script, "sh", b"{}\xfe"],
            {**env, b"RAW": b"a\xff\x80\xc3"}, b"\xfc1\n",
        )  # fmt: skip
        assert done.returncode == 0, done
        lost += out.read_bytes() != b"a\xff\x80\xc3|\xfc1\xfe|" + here + b"\n"
    losses("bytes that are no UTF-8", changed=lost)


def run_raw(args: list[Any], env: dict[bytes, bytes], stdin: bytes) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "ramherd", *args], env=env, input=stdin, capture_output=True,
        timeout=60, check=False,
    )  # fmt: skip


def test_a_file_that_is_gone_fails_its_job_alone(
    service: Service, losses: Losses, tmp_path: Path
) -> None:
    """Somebody has deleted the environment of a herd: the service and other herds go on."""
    talker = Talker(tmp_path)
    talker.go()
    agent = {"agent": "claude", "agent_program": str(talker.program), "memory": "20MiB"}
    service.client.pause()
    service.submit(
        {"name": "command", "command": "true"},
        {"name": "agent", "prompt": "do it", **agent},
        {"name": "warm", "prompt": "do it", "reuse": 3, **agent},
    )
    state = service.ramherd.state / "ramherd"
    # The service may have the environment in memory.
    assert service.stop() == 0
    (environment,) = (state / "environments").iterdir()
    environment.unlink()
    service.start()
    service.submit({"name": "other", "command": "true"})
    service.client.resume()
    for name in ("command", "agent", "warm"):
        service.await_state(name, "failed")
        assert str(environment) in str(service.job(name)["reason"])
    service.await_state("other", "done")

    losses("the environment of a herd is deleted", services=int(service.process.poll() is not None))
