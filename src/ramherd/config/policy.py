"""The settings that decisions compare with, as the `Policy` that `run`, `exec` and `up` share."""

from ramherd.config.load import Config
from ramherd.core.policies import Policy


def make_policy(config: Config) -> Policy:
    return Policy(
        budget_cap_bytes=config["budget"],
        budget_share=config["budget_share"],
        no_wait=config["no_wait"],
        grace_s=config["grace"],
        pids_limit=config["pids_limit"],
        log_head_bytes=config["log_head"],
        log_ring_bytes=config["log_ring"],
        log_total_bytes=config["log_total"],
    )
