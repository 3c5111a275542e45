"""The numbers that decisions compare with. Texts become these in `config/`.

Named tuples: every program reads its settings, the hook at each call, and the defaults are here. To
import `dataclasses` takes 20 ms, and a frozen class of it 0.6 ms.
"""

from typing import Any, NamedTuple

from ramherd.core.units import GIB, MIB

# The kinds of pen, the strongest first.
PEN_KINDS = ("cgroup2", "cgroup1", "polling")


class Policy(NamedTuple):
    """The numbers that decisions compare with. Texts become these in `config/load.py`."""

    budget_cap_bytes: int | None = None
    no_wait: bool = False
    # Above 80 % of memory the machine begins to swap or to drop its page cache.
    budget_share: float = 0.80
    # Agents were seen to end within 0.4 s of TERM (claude, in a tool): 10 s is for test runs
    # and builds below them, which write their files.
    grace_s: float = 10.0
    leftover_grace_s: float = 2.0
    # Another run waits for the memory of a preempted one; an agent takes half a second to save its
    # session. A job that starts over has nothing to save, and gets no grace.
    preempt_grace_s: float = 2.0
    # qwen waits after TERM until its model has replied: 8 s were measured.
    recycle_grace_s: float = 1.5
    # A killed pen that is not empty by then is killed again, and in the end given up: what
    # lives on then is asleep in the kernel, or another user's by a setuid program.
    kill_again_s: float = 1.0
    give_up_s: float = 30.0
    retry_first_s: float = 1.0
    retry_max_s: float = 60.0
    # A job whose runs keep being lost through no fault of its own ends after so many.
    max_lost: int = 3
    # A job is suspected after so many deaths of the keeper while it ran, and fails after so many
    # more that it was alone at.
    suspect_deaths: int = 3
    alone_deaths: int = 4
    # A suspect is cleared when a run has lived so many times as long as those that died, and some
    # time more: a start under load takes seconds.
    clear_factor: float = 2.0
    clear_margin_s: float = 2.0
    # Between two trials of a suspect alone the keeper has to live without it: so many times as long
    # as the suspect lived, within these bounds. Simulated with a keeper that is killed from outside
    # at the worst rate, 1 of 36,000 jobs of 1 s to 1,000 s failed (2026-11-16).
    alone_factor: float = 5.0
    alone_least_s: float = 5.0
    alone_most_s: float = 1800.0
    # A busy API costs no retries. Limits of a subscription last for hours: 50 tries with up to 10
    # minutes between them are 8 hours.
    overload_first_s: float = 5.0
    overload_max_s: float = 600.0
    max_overloads: int = 50
    # The fleet's hard limit, and the mark below it at which the youngest run is put back.
    fleet_slack_bytes: int = 256 << 20
    fleet_mark_bytes: int = 64 << 20
    # An agent prints at each turn and tool. A test run in a tool takes minutes; 0 is never.
    stall_after_s: float = 600.0
    # An agent has 1-12 processes, a browser test some 50, a parallel build some hundreds.
    pids_limit: int = 4096
    # What is kept of each stream of a run, and of all finished runs together.
    log_head_bytes: int = 8 << 20
    log_ring_bytes: int = 56 << 20
    log_total_bytes: int = 4 << 30


class GrantPolicy(NamedTuple):
    """The numbers that the governor compares with; `docs/governor.md` has their measurements."""

    # 30 holds for a gigabyte, 5 ms each: a sixth of a second while a tool call starts.
    quantum_bytes: int = 32 * MIB
    # The event comes at the grant less this. Overshoot was 3 MB at most at 3.3 GB/s, so
    # that what is held stays within the grant.
    arm_below_bytes: int = 4 * MIB
    # So near to that mark a run counts as at it: charges come in batches of 64 pages a core, and on
    # cgroup v2 the kernel brakes a little before.
    near_bytes: int = 2 * MIB
    # A grant is shrunk to what is used and this, so long after the fall.
    headroom_bytes: int = 32 * MIB
    shrink_after_s: float = 5.0
    # While a run waits, the others keep no more than this above what they use.
    slim_bytes: int = 8 * MIB
    # The kernel's own limit is so far above the grant: a backstop for a supervisor that is late.
    margin_bytes: int = 48 * MIB
    patience_s: float = 5.0
    max_hold_s: float = 30.0
    # After a hold of this length, cold memory of idle agents goes to swap: so much at a time, of
    # each agent so often, and so much of it stays. zram takes half a second for 64 MiB.
    reclaim_after_s: float = 0.5
    reclaim_again_s: float = 30.0
    reclaim_bytes: int = 64 * MIB
    reclaim_keep_bytes: int = 48 * MIB
    # An urgent waiter that was not held for so long has finished growing.
    urgent_for_s: float = 2.0
    # So long after growth was refused, only the first of those that wait grows.
    short_for_s: float = 2.0
    # A burst is mostly over so long after its run has stopped growing.
    burst_s: float = 7.0
    # A job that had so much of the lease, and made others leave for two bursts or more, keeps its
    # room after a burst: so long for each burst but the first.
    keep_share: float = 0.6
    keep_s: float = 20.0
    # Runs that leave for one job within this time leave for the same burst.
    same_burst_s: float = 10.0
    # A job that was stopped so often does not come back beside an older one that bursts repeatedly.
    worn_stops: int = 5
    # Agents reach their base 8 s after the start, slow ones after 20 s.
    young_s: float = 20.0
    fill_share: float = 0.95
    z_resumes: float = 0.5
    z_starts_over: float = 1.5
    # Equal agents started in one instant burst together: a quarter of the memory a second.
    stagger_s: float = 1.0
    stagger_share: float = 0.25
    # Hundreds of starts under way at once make each of them, and the machine, late.
    max_starting: int = 16
    max_parallel: int | None = None
    # A waiting job rises by one priority in this time.
    ageing_s: float = 600.0
    # So long may small jobs pass a large one that does not fit yet.
    overtake_s: float = 120.0
    # A debt that is paid at once, as most are, makes no level.
    tight_debt_s: float = 1.0
    single_debt_s: float = 10.0
    # A level goes on so long after its last sign, and longer if it came back so soon after its end:
    # a program that took and gave 3 GiB every four seconds changed the level 30 times in 68 s.
    level_lasts_s: float = 5.0
    level_lasts_again_s: float = 30.0
    level_back_s: float = 60.0
    # On and off marks.
    single_bases: tuple[float, float] = (2.0, 2.5)
    memory_pressure_marks: tuple[float, float] = (0.20, 0.10)
    cpu_pressure_marks: tuple[float, float] = (0.90, 0.75)
    swap_in_marks: tuple[float, float] = (4.0 * MIB, 1.0 * MIB)
    single_failed_starts: int = 3

    def scaled(self, time: float, size: float) -> "GrantPolicy":
        """The same policy for agents that live `time` times faster and are `size` times smaller."""
        times: dict[str, Any] = {name: getattr(self, name) / time for name in TIMES}
        quantum, headroom = (
            int(value / size) for value in (self.quantum_bytes, self.headroom_bytes)
        )
        # What a run keeps stays above its mark, which is the kernel's to set: it would be held.
        headroom = max(headroom, self.slim_bytes)
        return self._replace(**times, quantum_bytes=quantum, headroom_bytes=headroom)


TIMES = (
    "shrink_after_s", "patience_s", "max_hold_s", "urgent_for_s", "short_for_s", "burst_s",
    "keep_s", "same_burst_s", "young_s", "stagger_s", "ageing_s", "overtake_s", "tight_debt_s",
    "single_debt_s", "level_lasts_s", "level_lasts_again_s", "level_back_s", "reclaim_after_s",
    "reclaim_again_s",
)  # fmt: skip


class RecyclePolicy(NamedTuple):
    recycle_at_bytes: int = int(1.5 * GIB)
    # A leak that would reach the mark within this is ended at the next turn.
    horizon_s: float = 60.0
    # Back at the mark so soon after a restart: the session needs it, it does not leak.
    back_within_s: float = 600.0

    def scaled(self, time: float) -> "RecyclePolicy":
        """The same for agents that live `time` times faster."""
        return self._replace(
            horizon_s=self.horizon_s / time, back_within_s=self.back_within_s / time
        )


class ReusePolicy(NamedTuple):
    # A fresh claude holds 110 MiB of its own, one after 20 heavy prompts 250.
    most_bytes: int = 500 * MIB
    most_age_s: float = 3600.0
    most_idle_s: float = 60.0


class StrayPolicy(NamedTuple):
    grace_s: float = 600.0
    # An agent waits for its user this long over lunch; a server unused for so long is lost.
    idle_s: float = 1800.0
    suspect_s: float = 4 * 3600.0
    warn_at_bytes: int = 3 << 29
    warn_subagents: int = 3
    warn_mcp: int = 10
    warn_node: int = 40
    warn_memory_percent: int = 80
