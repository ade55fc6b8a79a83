"""Whether two ways to run a program print the same numbers: what can be known of its results from outside.

What differs between two launches of the unchanged program (times, dates, identifiers) says nothing and is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from jaxprof.analysis.explain.trial import NumbersCompared

_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)(?![\w])")
_ACCEPTED: Final = 1e-4
"""Relative: what two ways to compute the same in float32 differ by at most, as in the check of results."""
MOST_CHARACTERS: Final = 1 << 20
"""Of what a launch prints, so much is compared."""


def compare_printed(unchanged: Sequence[str], changed: Sequence[str]) -> NumbersCompared:
    """The numbers that launches of the unchanged and of the changed program printed. At least two unchanged launches
    are needed to know which numbers repeat at all."""
    if len(unchanged) < 2 or not changed:
        return _unknown("too few launches")
    before, after = [_lines(text) for text in unchanged], [_lines(text) for text in changed]
    if len({len(lines) for lines in before}) > 1:
        return _unknown("the program prints another number of lines at each launch")
    if any(len(lines) != len(before[0]) for lines in after):
        return NumbersCompared(of="printed", agree=False, note="another number of lines is printed")
    compared, worst, note = 0, 0.0, ""
    for number, lines in enumerate(zip(*before, strict=True), start=1):
        words, values = lines[0]
        if any(line[0] != words for line in lines):
            continue  # what is printed here differs from launch to launch
        there = [launch[number - 1] for launch in after]
        if any(line[0] != words for line in there):
            return NumbersCompared(of="printed", agree=False, note=f"line {number} of what is printed is another one")
        for at, value in enumerate(values):
            if any(line[1][at] != value for line in lines):
                continue
            compared += 1
            apart = max(_apart(float(value), float(line[1][at])) for line in there)
            if apart > worst:
                worst, note = apart, f"line {number} of what is printed"
    if not compared:
        return _unknown("the program prints no number that is the same at each launch")
    return NumbersCompared(
        of="printed",
        compared=compared,
        agree=worst <= _ACCEPTED,
        relative=worst if math.isfinite(worst) else None,
        note=note if worst > _ACCEPTED else "",
    )


def _unknown(note: str) -> NumbersCompared:
    return NumbersCompared(of="printed", note=note)


def _lines(text: str) -> list[tuple[str, list[str]]]:
    """Each line without its numbers, and the numbers."""
    return [(_NUMBER.sub("#", line), _NUMBER.findall(line)) for line in text[:MOST_CHARACTERS].splitlines()]


def _apart(right: float, got: float) -> float:
    if right == got or (math.isnan(right) and math.isnan(got)):
        return 0.0
    if not (math.isfinite(right) and math.isfinite(got)):
        return math.inf
    return abs(right - got) / max(abs(right), abs(got))
