"""What is assumed of a program before it has been seen at work."""

from ramherd.core.memory import MB, PRIOR, Estimate

# Claude's is from published runs. The others' base is the memory (PSS) of their process trees
# while they wait on the API (1 to 3 runs each: 158, 323, 512 and 393 MiB); nobody has measured
# them at work, so spread and peak are Claude's, a little more for the larger ones.
PRIORS = {
    "claude": PRIOR,
    "codex": Estimate(base_bytes=165 * MB, sd_bytes=110 * MB, peak_bytes=260 * MB),
    "gemini": Estimate(base_bytes=340 * MB, sd_bytes=130 * MB, peak_bytes=480 * MB),
    "opencode": Estimate(base_bytes=540 * MB, sd_bytes=150 * MB, peak_bytes=700 * MB),
    "qwen": Estimate(base_bytes=410 * MB, sd_bytes=130 * MB, peak_bytes=540 * MB),
}


def prior_of(agent: str) -> Estimate:
    """A command nobody knows is taken for the agent with the most runs behind its figures."""
    return PRIORS.get(agent, PRIOR)
