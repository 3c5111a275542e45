"""Source, documentation and tests avoid the phrases that make English sound translated."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERBS = "wants|waits|has|comes|does|is|it|asks|needs|goes|holds|runs|says|gets|makes|takes|was"
# A pattern, and what to write instead.
EVERYWHERE = {
    r"\banew\b": "again",
    r"\bin vain\b": "unsuccessfully, without effect",
    r"\bso long as\b": "until, while",
    r"\bof these the ones\b": "the ones that",
    r"\bsomebody asked\b": "requested by the user",
    r"\b(is|are) through\b": "reported success, has ended",
    r"\bsince \d[\d.]* ?s\b": "has waited 3 s",
    r"(?<![-.\d])1 (processes|runs|times|files|agents)\b": "the singular",
}
IN_THE_PRODUCT = {
    rf"(?<!user )(?<!users )\bwho ({VERBS})\b": "the run that, the process that",
    r"\b(somebody|whoever)\b": "the user, another process",
    r"\bfor want of\b": "for lack of",
}
PRODUCT = ("src/**/*.py", "docs/*.md", "README.md")


def find(globs: tuple[str, ...], patterns: dict[str, str]) -> Iterator[str]:
    for path in (path for glob in globs for path in sorted(ROOT.glob(glob))):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for pattern, instead in patterns.items():
                if path != Path(__file__) and re.search(pattern, line, re.IGNORECASE):
                    yield f"{path.relative_to(ROOT)}:{number}: {line.strip()} (write: {instead})"


@pytest.mark.parametrize(
    ("globs", "patterns"),
    [((*PRODUCT, "tests/**/*.py"), EVERYWHERE), (PRODUCT, IN_THE_PRODUCT)],
    ids=["everywhere", "product"],
)
def test_english_is_plain(globs: tuple[str, ...], patterns: dict[str, str]) -> None:
    """Each line that is found comes with a better phrase."""
    found = list(find(globs, patterns))
    assert not found, "\n" + "\n".join(found)
