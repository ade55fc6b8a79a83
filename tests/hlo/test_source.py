"""Line numbers without a table of lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jaxprof.hlo import source as module
from jaxprof.hlo.source import Source


@given(st.text("ab\n", max_size=300), st.integers(1, 7))
def test_agrees_with_split(text: str, block: int) -> None:
    original = module._BLOCK
    module._BLOCK = block  # type: ignore[misc]
    try:
        source = Source(text)
        lines = text.split("\n")
        ends_with_break = text.endswith("\n") or not text
        assert source.line_count == len(lines) - ends_with_break
        at = 0
        for number, line in enumerate(lines, start=1):
            assert source.offset(number) == at
            assert source.line(at) == number
            assert source.line(at + len(line)) == number
            at += len(line) + 1
        assert source.offset(len(lines) + 6) == len(text)
        assert source.lines(2, 2) == text.splitlines()[1:3]
    finally:
        module._BLOCK = original  # type: ignore[misc]
