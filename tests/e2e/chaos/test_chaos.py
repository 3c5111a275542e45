"""Killed at random instants, and for a minute under load: nothing is lost, nothing grows."""

import os
from pathlib import Path

from e2e.chaos.chaos import run_chaos, run_keeper_chaos
from e2e.chaos.soak import run_soak
from integration.conftest import pens

ROUNDS = int(os.environ.get("RAMHERD_TEST_ROUNDS", "20"))
KEEPER_KILLS = int(os.environ.get("RAMHERD_TEST_KEEPER_KILLS", "20"))
SOAK_S = float(os.environ.get("RAMHERD_TEST_SOAK_S", "60"))


def test_whoever_is_killed_whenever_each_job_is_done_once(tmp_path: Path) -> None:
    """No job is lost, none runs twice at a time, and nothing is left."""
    counted = run_chaos(tmp_path, ROUNDS, seed=20, pen=pens()[0])

    assert counted["rounds"] == ROUNDS
    assert counted["adopted"] > 0
    assert counted["keepers"] > 0


def test_a_keeper_that_is_killed_again_and_again_fails_no_job(tmp_path: Path) -> None:
    """Suspects are tried with fewer and fewer others, and every one of them is cleared."""
    counted = run_keeper_chaos(tmp_path, KEEPER_KILLS, seed=20, pen=pens()[0])

    assert counted["keeper_kills"] >= KEEPER_KILLS
    assert counted["lost"] > 0
    assert counted["wrongly_failed"] == 0


def test_a_service_under_load_does_not_grow(tmp_path: Path) -> None:
    """Memory and descriptors of the service, its API and its keeper stay as they are when warm, and
    so do the write-ahead log, the bytes of logs, and the events of a herd.
    """
    counted = run_soak(tmp_path, SOAK_S, seed=1, pen=pens()[0])

    assert {"up", "api", "keeper", "store"} <= set(counted)
