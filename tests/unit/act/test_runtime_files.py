"""The runtime directory of a process that lives long."""

from pathlib import Path

from ramherd.act.runtime_files import RuntimeFiles
from ramherd.core.errors import StoreError
from ramherd.core.reasons import Why


def test_what_is_made_again_is_news(tmp_path: Path) -> None:
    """Each part is called with the directory of now; what was there is no news."""
    called: list[Path] = []
    answers = iter([False, True, False, False])

    def restore(path: Path) -> bool:
        called.append(path)
        return next(answers)

    files = RuntimeFiles(Path("/before"), [restore, restore], lambda: tmp_path)
    news = files.restore()
    assert news is not None
    assert (news.why, news.numbers["path"]) == (Why.RUNTIME_RESTORED, str(tmp_path))
    assert files.restore() is None
    assert (files.path, called) == (tmp_path, [tmp_path] * 4)


def test_a_directory_that_cannot_be_made_is_news_once(tmp_path: Path) -> None:
    """It is tried again with each tick, and reported again once it has worked in between."""
    errors = iter(
        [StoreError("cannot make x"), StoreError("cannot make x"), None, OSError(28, "No space")]
    )

    def find() -> Path:
        if (error := next(errors)) is not None:
            raise error
        return tmp_path

    files = RuntimeFiles(tmp_path, [], find)
    first, again, works, other = (files.restore() for _ in range(4))
    assert first is not None
    assert (first.why, first.numbers["what"]) == (Why.NO_RUNTIME, "cannot make x")
    assert again is None
    assert works is None
    assert other is not None
    assert other.numbers["what"] == f"cannot make {tmp_path}: No space"
