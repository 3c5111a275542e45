"""What the agents of each herd have cost, and what they may cost together."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ramherd.decide.ends import cost_reason
from ramherd.model import Reason
from ramherd.purse import Purse


@dataclass
class Account:
    limit_usd: float | None
    # Of runs that have ended.
    spent_usd: float = 0.0
    # Those that are told a share of what is left.
    jobs: Iterable[str] = ()
    purse: Purse | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.limit_usd is not None:
            self.purse = Purse(self.limit_usd - self.spent_usd, self.jobs)

    def pay(self, job: str, cost_usd: float, *, said: bool) -> None:
        """After a run. `said`: that was all; else it may have cost more than is known."""
        self.spent_usd += cost_usd
        if self.purse is not None:
            self.purse.spent_usd += cost_usd
            self.purse.end_run(job, said=said)


class Costs:
    """`read` gives the account of a herd that is not known here yet."""

    def __init__(self, read: Callable[[str], Account]) -> None:
        self._read = read
        self._accounts: dict[str, Account] = {}
        # Herds that have cost as much as they may: nothing of them starts any more.
        self.closed: set[str] = set()

    def __getitem__(self, herd: str) -> Account:
        if herd not in self._accounts:
            self._accounts[herd] = self._read(herd)
        return self._accounts[herd]

    def left_usd(self, herd: str) -> float | None:
        account = self[herd]
        return None if account.limit_usd is None else account.limit_usd - account.spent_usd

    def is_closed(self, herd: str) -> bool:
        left = self.left_usd(herd)
        return herd in self.closed or (left is not None and left <= 0)

    def close(self, herd: str, live_usd: float) -> Reason | None:
        """The reason to end a herd, if there is one. `live_usd` is what its runs have cost."""
        account = self[herd]
        cost = account.spent_usd + live_usd
        if account.limit_usd is None or cost < account.limit_usd:
            return None
        self.closed.add(herd)
        return cost_reason("the herd", cost, account.limit_usd)

    def keep(self, herds: Iterable[str]) -> None:
        """The rest is forgotten, and read again when it is asked for."""
        kept = set(herds)
        self._accounts = {herd: one for herd, one in self._accounts.items() if herd in kept}
        self.closed &= kept
