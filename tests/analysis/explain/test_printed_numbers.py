"""Whether two ways to run a program print the same numbers."""

from __future__ import annotations

import pytest

from jaxprof.analysis.explain.model import NumbersCompared, compare_printed

STEADY = "loss 0.125 at step 3\ntook {} s\n"


def compared(*changed: str) -> NumbersCompared:
    return compare_printed([STEADY.format(0.51), STEADY.format(0.52)], changed)


def test_what_differs_from_launch_to_launch_is_left_out() -> None:
    numbers = compared(STEADY.format(99))
    assert (numbers.compared, numbers.agree, numbers.relative) == (2, True, 0.0)


@pytest.mark.parametrize(
    ("printed", "agree"),
    [("0.125001", True), ("0.1255", False), ("nan", False), ("-0.125", False)],
)
def test_another_number_is_seen(printed: str, agree: bool) -> None:
    numbers = compared(STEADY.format(0.5).replace("0.125", printed))
    assert numbers.agree is agree
    assert numbers.relative != 0
    assert ("line 1" in numbers.note) is not agree


def test_in_each_launch_of_the_changed_program() -> None:
    assert compared(STEADY.format(1), STEADY.format(1).replace("0.125", "0.5")).agree is False


@pytest.mark.parametrize("printed", ["loss 0.125 at step 3\n", "error 0.125 at step 3\ntook 1 s\n"])
def test_other_words_are_no_agreement(printed: str) -> None:
    assert compared(printed).agree is False


@pytest.mark.parametrize(
    ("unchanged", "why"),
    [
        (["done\n", "done\n"], "no number"),
        (["at 12:01\n", "at 13:02\n"], "no number"),
        (["1\n", "1\n2\n"], "another number of lines"),
        (["1\n"], "too few"),
    ],
)
def test_nothing_to_compare_is_unknown_and_no_agreement(unchanged: list[str], why: str) -> None:
    numbers = compare_printed(unchanged, unchanged[:1])
    assert (numbers.agree, numbers.relative) == (None, None)
    assert why in numbers.note


def test_names_hold_no_numbers() -> None:
    numbers = compare_printed(["layer1 f32[4] x0 2.5\n"] * 2, ["layer1 f32[4] x0 2.5\n"])
    assert numbers.compared == 2  # the size and the value, and neither `layer1` nor `x0`
