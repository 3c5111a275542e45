"""Usage windows of a plan: so many requests in each, then 429 with the time of the reset."""

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class UsageWindows:
    """Windows of `length_s`, the first from the first request on. Whole seconds, as in headers."""

    length_s: int
    quota: int
    claim: str = "five_hour"
    # Requests for other models are not counted.
    model: str = ""
    began_s: int | None = None
    # Requests that were served, by the number of the window.
    served: Counter[int] = field(default_factory=Counter)
    # When requests were refused.
    refused: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, now_s: float) -> dict[str, str] | None:
        """None: served. Else the headers of the refusal."""
        with self._lock:
            if self.began_s is None:
                self.began_s = int(now_s)
            window = self.window_at(now_s)
            if self.served[window] < self.quota:
                self.served[window] += 1
                return None
            self.refused.append(now_s)
        prefix = "anthropic-ratelimit-unified-"
        return {
            f"{prefix}status": "rejected",
            f"{prefix}reset": str(self.reset_s(window)),
            f"{prefix}representative-claim": self.claim,
        }

    def window_at(self, now_s: float) -> int:
        assert self.began_s is not None
        return int((now_s - self.began_s) // self.length_s)

    def reset_s(self, window: int) -> int:
        assert self.began_s is not None
        return self.began_s + (window + 1) * self.length_s
