"""Which time counts for a run. The clock is monotonic: setting the wall clock changes nothing. A
machine that sleeps, and a supervisor that is stopped, leave a gap between two steps of the loop. In
a gap the run was neither measured nor granted memory, so its time limits do not count it.
"""

# The loop runs twice a second; on a machine that swaps, a step took two seconds.
LONGEST_STEP_S = 5.0
# Smaller steps come from gradual clock corrections, which add up to less than a delay.
LEAST_JUMP_S = 2.0


def find_jump_s(ahead_before_s: float, ahead_s: float) -> float:
    """By how much the wall clock was set, from its lead over the monotonic clock before and now."""
    jump_s = ahead_s - ahead_before_s
    return jump_s if abs(jump_s) >= LEAST_JUMP_S else 0.0


def find_gap_s(before_s: float, at_s: float) -> float:
    """The time between two steps, if it does not count."""
    passed_s = at_s - before_s
    return passed_s if passed_s > LONGEST_STEP_S else 0.0
