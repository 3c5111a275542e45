"""How often a property test reaches what it is about: one that never does cannot fail."""

from collections import Counter

LEAST_SHARE = 0.1


class Reached:
    """Called with the precondition in each example; hands it back, for use in an `if`."""

    def __init__(self) -> None:
        self.examples: Counter[str] = Counter()
        self.reached: Counter[str] = Counter()

    def __call__(self, condition: object, what: str = "the precondition") -> bool:
        self.examples[what] += 1
        self.reached[what] += bool(condition)
        return bool(condition)

    def check(self) -> None:
        assert self.examples, "no example says whether it reached what the test is about"
        for what, number in self.examples.items():
            assert self.reached[what] >= LEAST_SHARE * number, (
                f"{what} was reached in {self.reached[what]} of {number} examples"
            )
