from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.events.base import run_number
from jaxprof.text import columns, safe, safe_lines, shorten, shorten_middle, whole_number


def test_escape_sequences_are_shown_and_plain_text_is_left_alone():
    for text, shown in {
        "a\x1b[31mred": "a\u241b[31mred", "bell\x07": "bell\u2407", "rtl\u202eevil": "rtl\\u202eevil",
        "csi\x9b1m": "csi\\x9b1m", "selu jit µs ×": "selu jit µs ×",
    }.items():  # fmt: skip
        assert safe(text) == shown
    assert safe_lines("a\r\nb\rc\td") == ["a", "b", "c   d"]
    assert (shorten("matmul", 4), shorten("表表表", 4)) == ("mat…", "表…")


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text):
    shown = safe(text)
    assert not any(ord(character) < 0x20 or 0x7F <= ord(character) <= 0x9F for character in shown)


@given(st.text(), st.integers(1, 40))
def test_shorten_keeps_the_width(text, width):
    assert columns(shorten(text, width)) <= width


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (30, "multiply_subtract_add_fusion.3"),
        (29, "multiply_subtract…dd_fusion.3"),
        (20, "multiply_su…fusion.3"),
        (10, "multi…on.3"),
        (8, "mul…on.3"),
    ],
)
def test_a_name_is_cut_in_its_middle(width, shown):
    assert shorten_middle("multiply_subtract_add_fusion.3", width) == shown


@given(st.text(alphabet="abc_.1", max_size=60), st.integers(8, 60))
def test_a_cut_name_fills_its_room(name, width):
    assert columns(shorten_middle(name, width)) == min(len(name), width)


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), ("9" * 18, 10**18 - 1), ("9" * 5000, None), ("-1", None), ("", None), ("x", None)]
)
def test_a_number_has_no_more_digits_than_python_reads(text, number):
    assert whole_number(text) == number
    assert run_number(f"r{text}") == (number or 0)
