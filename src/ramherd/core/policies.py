"""The numbers that decisions compare with. `config/` parses them from text.

They are named tuples because every program reads its settings, the hook at each call, and the
defaults are here: importing `dataclasses` takes 20 ms, and each frozen dataclass 0.6 ms.
"""

from typing import Any, NamedTuple

from ramherd.core.units import GIB, MIB

# The kinds of pen, the strongest first.
PEN_KINDS = ("cgroup2", "cgroup1", "polling")


class Policy(NamedTuple):
    """The numbers that decisions compare with. `config/load.py` parses them from text."""

    budget_cap_bytes: int | None = None
    no_wait: bool = False
    # Above 80 % of memory in use the machine begins to swap or to drop its page cache.
    budget_share: float = 0.80
    # Agents ended within 0.4 s of TERM in tests (claude, in a tool): 10 s is for test runs and
    # builds started by them, which write their files.
    grace_s: float = 10.0
    leftover_grace_s: float = 2.0
    # Another run waits for the memory of a preempted one; an agent takes half a second to save its
    # session. A job that starts over has nothing to save, and gets no grace.
    preempt_grace_s: float = 2.0
    # qwen waits after TERM until its model has replied: 8 s were measured.
    recycle_grace_s: float = 1.5
    # A killed pen that is not empty by then is killed again, and finally given up: the remaining
    # processes sleep in the kernel, or belong to another user through a setuid program.
    kill_again_s: float = 1.0
    give_up_s: float = 30.0
    retry_first_s: float = 1.0
    retry_max_s: float = 60.0
    # A job fails after this many runs are lost through no fault of its own.
    max_lost: int = 3
    # A job is suspected after this many deaths of the keeper while it ran, and fails after this
    # many more while it ran alone.
    suspect_deaths: int = 3
    alone_deaths: int = 4
    # A suspect is cleared when its run has lived this many times as long as the runs that died,
    # plus some seconds, because a start under load takes seconds.
    clear_factor: float = 2.0
    clear_margin_s: float = 2.0
    # Between two trials of a suspect alone, the keeper has to live without it: this many times as
    # long as the suspect lived, within these bounds. Simulated with a keeper that is killed from
    # outside at the worst rate, 1 of 36,000 jobs of 1 s to 1,000 s failed (2026-11-16).
    alone_factor: float = 5.0
    alone_least_s: float = 5.0
    alone_most_s: float = 1800.0
    # A busy API costs no retries. Limits of a subscription last for hours: 50 tries up to 10
    # minutes apart take 8 hours.
    overload_first_s: float = 5.0
    overload_max_s: float = 600.0
    max_overloads: int = 50
    # The fleet's hard limit, and the mark below it at which the youngest run returns to the queue.
    fleet_slack_bytes: int = 256 << 20
    fleet_mark_bytes: int = 64 << 20
    # An agent prints at each turn and tool call. A test run in a tool takes minutes. 0 means never.
    stall_after_s: float = 600.0
    # An agent has 1-12 processes, a browser test about 50, a parallel build some hundreds.
    pids_limit: int = 4096
    # The output kept of each stream of a run, and of all finished runs together.
    log_head_bytes: int = 8 << 20
    log_ring_bytes: int = 56 << 20
    log_total_bytes: int = 4 << 30
    # The memory history of the service: a week of 500 runs at a time.
    memory_history_bytes: int = 64 << 20


class GrantPolicy(NamedTuple):
    """The numbers that the governor compares with; `docs/governor.md` has their measurements."""

    # A growth of one gigabyte takes 30 holds of 5 ms each: a sixth of a second for a tool call.
    quantum_bytes: int = 32 * MIB
    # The event comes at the grant less this. The largest overshoot was 3 MB at 3.3 GB/s, so a held
    # run stays within its grant.
    arm_below_bytes: int = 4 * MIB
    # A run within this distance of its mark counts as at the mark: charges come in batches of 64
    # pages per core, and on cgroup v2 the kernel slows the run down slightly before the mark.
    near_bytes: int = 2 * MIB
    # A grant is shrunk to the memory in use plus this headroom, this long after use has fallen.
    headroom_bytes: int = 32 * MIB
    shrink_after_s: float = 5.0
    # While a run waits, the others keep at most this much above the memory that they use.
    slim_bytes: int = 8 * MIB
    # The kernel's own limit is this far above the grant: a backstop in case the supervisor is late.
    margin_bytes: int = 48 * MIB
    patience_s: float = 5.0
    max_hold_s: float = 30.0
    # After a hold of this length, cold memory of idle agents goes to swap: the pause between two
    # moves of one agent, the size of each, and the memory that stays. zram takes 0.5 s for 64 MiB.
    reclaim_after_s: float = 0.5
    reclaim_again_s: float = 30.0
    reclaim_bytes: int = 64 * MIB
    reclaim_keep_bytes: int = 48 * MIB
    # An urgent run that was not held for this long has finished growing.
    urgent_for_s: float = 2.0
    # For this long after growth was refused, only the first waiting run grows.
    short_for_s: float = 2.0
    # A tool call of a gigabyte grows in 30 quanta, and is not held between them: for this long
    # after a quantum it counts as still growing.
    growing_s: float = 0.25
    # No second run is stopped for a waiting one this soon after the first.
    settle_s: float = 1.0
    # A burst is mostly over this long after its run has stopped growing.
    burst_s: float = 7.0
    # A job that had this share of the lease, and made other runs leave for two bursts or more,
    # keeps its room after a burst: for this time per burst, except the first.
    keep_share: float = 0.6
    keep_s: float = 20.0
    # Runs that leave for one job within this time leave for the same burst.
    same_burst_s: float = 10.0
    # A job stopped this often does not start again beside an older one that bursts repeatedly.
    worn_stops: int = 5
    # Agents reach their base 8 s after the start, slow ones after 20 s.
    young_s: float = 20.0
    fill_share: float = 0.95
    z_resumes: float = 0.5
    z_starts_over: float = 1.5
    # Identical agents started at the same time burst together: a quarter of the memory per second.
    stagger_s: float = 1.0
    stagger_share: float = 0.25
    # Hundreds of simultaneous starts delay each other and slow down the machine.
    max_starting: int = 16
    max_parallel: int | None = None
    # A waiting job rises by one priority level in this time.
    ageing_s: float = 600.0
    # For this long, small jobs may overtake a large one that does not fit yet.
    overtake_s: float = 120.0
    # A debt that is paid at once, as most are, does not raise the level.
    tight_debt_s: float = 1.0
    single_debt_s: float = 10.0
    # A level lasts this long after its last sign, and longer if it returned soon after its end: a
    # program that took and released 3 GiB every four seconds changed the level 30 times in 68 s.
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
        """The same policy for agents that run `time` times faster and are `size` times smaller."""
        times: dict[str, Any] = {name: getattr(self, name) / time for name in TIMES}
        quantum, headroom = (
            int(value / size) for value in (self.quantum_bytes, self.headroom_bytes)
        )
        # More than the distance from grant to mark, which depends on the kernel: no run is held by
        # it.
        headroom = max(headroom, self.slim_bytes)
        return self._replace(**times, quantum_bytes=quantum, headroom_bytes=headroom)


TIMES = (
    "shrink_after_s", "patience_s", "max_hold_s", "urgent_for_s", "short_for_s", "growing_s",
    "settle_s", "burst_s", "keep_s", "same_burst_s", "young_s", "stagger_s", "ageing_s",
    "overtake_s", "tight_debt_s", "single_debt_s", "level_lasts_s", "level_lasts_again_s",
    "level_back_s", "reclaim_after_s", "reclaim_again_s",
)  # fmt: skip


class RecyclePolicy(NamedTuple):
    recycle_at_bytes: int = int(1.5 * GIB)
    # A leak that would reach the mark within this time is ended at the next turn.
    horizon_s: float = 60.0
    # Back at the mark this soon after a restart: the session needs the memory and does not leak.
    back_within_s: float = 600.0

    def scaled(self, time: float) -> "RecyclePolicy":
        """The same policy for agents that run `time` times faster."""
        return self._replace(
            horizon_s=self.horizon_s / time, back_within_s=self.back_within_s / time
        )


class ReusePolicy(NamedTuple):
    # A fresh claude has 110 MiB of its own memory, after 20 heavy prompts 250 MiB.
    most_bytes: int = 500 * MIB
    most_age_s: float = 3600.0
    most_idle_s: float = 60.0


class StrayPolicy(NamedTuple):
    grace_s: float = 600.0
    # An agent may wait this long for a user at lunch; a server unused for this long is abandoned.
    idle_s: float = 1800.0
    suspect_s: float = 4 * 3600.0
    warn_at_bytes: int = 3 << 29
    warn_subagents: int = 3
    warn_mcp: int = 10
    warn_node: int = 40
    warn_memory_percent: int = 80
    # A look of the service costs 0.2 s of CPU, with the start of its process.
    watch_every_s: float = 60.0
    # Common MCP servers hold 65 to 120 MB (PSS) without a browser.
    warn_server_bytes: int = 200 << 20
    # Patterns of commands and directories whose processes are never ended.
    keep: tuple[str, ...] = ()


class GatewayPolicy(NamedTuple):
    """For the MCP servers of the gateway."""

    # Servers without a browser use 65 to 120 MiB (one copy each, after their first call).
    memory_limit_bytes: int = 512 * MIB
    # A start takes about 0.5 s.
    idle_s: float = 600.0
