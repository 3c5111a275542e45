"""What is assumed of a program before it has been seen: measured waiting on its API, and what
published runs of Claude Code held on top of that while they worked.
"""

from ramherd.grants import MB, PRIOR, Estimate

# Anonymous and shared memory per process tree, two runs each, plus half of what Claude Code
# grew by while it worked (113 MiB waiting, 215 MB on average at work).
PRIORS = {
    "claude": PRIOR,
    "codex": Estimate(base_bytes=160 * MB, sd_bytes=110 * MB, peak_bytes=260 * MB),
    "gemini": Estimate(base_bytes=340 * MB, sd_bytes=130 * MB, peak_bytes=480 * MB),
    "opencode": Estimate(base_bytes=540 * MB, sd_bytes=150 * MB, peak_bytes=700 * MB),
    "qwen": Estimate(base_bytes=400 * MB, sd_bytes=130 * MB, peak_bytes=540 * MB),
}


def prior_of(agent: str) -> Estimate:
    """A command nobody knows is taken for the agent with the most runs behind its figures."""
    return PRIORS.get(agent, PRIOR)
