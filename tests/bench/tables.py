"""Tables of measurements: printed, and put into a document between two marks."""

from pathlib import Path


def publish(lines: list[str], mark: str, document: Path | None) -> None:
    table = "\n".join(lines) + "\n"
    print(table)
    if document is not None:
        begin, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
        before, after = document.read_text().split(begin)
        document.write_text(before + begin + table + after[after.index(end) :])
