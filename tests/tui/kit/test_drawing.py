"""Small pictures made of characters."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jaxprof.tui.kit.drawing import styled_runs


@given(st.lists(st.tuples(st.sampled_from("ab "), st.sampled_from(["", "bold", "red"])), max_size=30))
def test_characters_of_one_style_are_joined_and_none_is_lost(characters: list[tuple[str, str]]) -> None:
    line = styled_runs(characters)
    assert line.plain == "".join(text for text, _ in characters)
    changes = sum(before[1] != after[1] for before, after in pairwise(characters))
    assert len(line.spans) <= changes + 1
    styles = [next((str(span.style) for span in line.spans if span.start <= at < span.end), "")
              for at in range(len(characters))]  # fmt: skip
    assert styles == [style for _, style in characters]
