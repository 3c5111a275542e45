"""Starts of agents while their API is too busy for them, for each kind (`label`) by itself."""

from collections.abc import Iterable, Iterator

from ramherd.decide.start_pace import Pace, after_overload, after_start, next_pace


class StartPacing:
    def __init__(self) -> None:
        self._paces: dict[str, Pace] = {}
        self._calmed: list[str] = []

    def slow_down(self, label: str, at_s: float) -> float | None:
        """How far starts are apart from now on; None if that was so already."""
        before = self._paces.get(label, Pace())
        after = self._paces[label] = after_overload(before, at_s)
        return None if after is before else after.pause_s

    def note_start(self, label: str, at_s: float) -> None:
        if label in self._paces:
            self._paces[label] = after_start(self._paces[label], at_s)

    def times(self, line: Iterable[str], at_s: float) -> Iterator[float]:
        """From when each of those in line may start: of one kind only the first is next."""
        next_s: dict[str, float] = {}
        for label in line:
            if label not in next_s:
                self._recover(label, at_s)
            pace = self._paces.get(label, Pace())
            time_s = next_s.get(label, pace.next_s)
            yield time_s
            next_s[label] = max(time_s, at_s) + pace.pause_s if pace.pause_s else 0.0

    def _recover(self, label: str, at_s: float) -> None:
        if label in self._paces:
            self._paces[label] = next_pace(self._paces[label], at_s)
            if not self._paces[label].pause_s:
                del self._paces[label]
                self._calmed.append(label)

    def take_calmed(self) -> list[str]:
        """Those that start as before since this was last asked."""
        calmed, self._calmed = self._calmed, []
        return calmed

    def keep(self, labels: Iterable[str]) -> None:
        """The rest is forgotten."""
        kept = set(labels)
        self._paces = {label: pace for label, pace in self._paces.items() if label in kept}
