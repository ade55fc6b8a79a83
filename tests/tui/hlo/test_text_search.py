"""Searching a text: pieces, and the next match."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from jaxprof.tui.hlo.text_search import Hits, matches, pieces
from jaxprof.tui.kit.filter import compiled

# -- searching --------------------------------------------------------------------------------------------------------


@given(st.text("ab\n", max_size=300), st.integers(0, 300))
def test_pieces_cover_the_text_once_and_end_with_lines(text: str, start: int) -> None:
    start = min(start, len(text))
    found = list(pieces(text, start))
    covered = sorted(found)
    assert "".join(text[begin:end] for begin, end in covered) == text
    hits = Hits(compiled("ab"), start)
    for piece in found:
        hits.take(matches(text, hits.pattern, piece))
    hits.finish()
    split = 1 if text[max(0, start - 1) : start + 1] == "ab" and start else 0
    assert len(hits.offsets) == len(re.findall("ab", text)) - split


def test_the_next_match_follows_the_place_and_wraps() -> None:
    hits = Hits(compiled("a"), 0)
    hits.take([3, 7, 11])
    hits.finish()
    assert [hits.following(at, 1) for at in (0, 3, 8, 11)] == [0, 1, 2, 0]
    assert [hits.following(at, -1) for at in (0, 3, 8, 12)] == [2, 2, 1, 2]
    assert hits.words(1) == "2 of 3"
