"""The pictures of the documentation."""

import pytest

from support.docs_top import DOCS, PICTURES, Picture, render


@pytest.mark.parametrize("picture", PICTURES, ids=[one.name for one in PICTURES])
def test_the_pictures_are_current(picture: Picture) -> None:
    """`make screens` writes them."""
    assert (DOCS / f"{picture.name}.svg").read_text() == render(picture)
