"""The drill: fifty agents that leak, burst, fork, flood and do not listen, in 2 GiB."""

import json

import pytest

from integration.conftest import Ramherd


@pytest.mark.xdist_group("serial")
@pytest.mark.parametrize("seed", range(1, 11))
def test_every_agent_of_a_drill_is_done(ramherd: Ramherd, seed: int) -> None:
    """Whoever they are: all are done, the kernel kills nobody, and nothing is left."""
    done = ramherd.run(
        "drill", "--agents", "50", "--budget", "2GiB", "--seed", str(seed), "--pace", "180",
        "--json", "--pen", ramherd.pen,
    )  # fmt: skip
    summary = json.loads(done.stdout)
    assert (summary["done"], summary["oom_kills"]) == (50, 0), done.stderr[-2000:]
    assert summary["leftovers_ended"] >= 10


def test_a_drill_has_no_flags_in_vain(ramherd: Ramherd) -> None:
    """Fake agents are paid by nobody, and take no settings of a job."""
    told = ramherd.run("drill", "--help").stdout

    assert "--budget" in told
    assert not any(flag in told for flag in ("--max-cost-usd", "--on-alert", "--model"))
