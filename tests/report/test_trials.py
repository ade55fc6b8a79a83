"""The sentence about a fix that was tried: a gain is claimed where there is one, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from jaxprof.analysis.explain.model import FixTrial, NumbersCompared
from jaxprof.report.explain import trial_sentence
from jaxprof.stats import Block, LaunchBlocks, TimeComparison, compare

EQUAL = NumbersCompared(agree=True, relative=0.0)
CLOSE = NumbersCompared(agree=True, relative=1.2e-7)
OFF = NumbersCompared(agree=False, relative=3e-3)
UNKNOWN = NumbersCompared(note="one of them was not kept")


def times(ratio: float, *, spread: float = 0.001) -> TimeComparison:
    """Five launches, of which B takes 1 s."""
    off = [ratio * (1 + spread * (number - 2)) for number in range(5)]
    return compare([LaunchBlocks((Block(0, (each,)), Block(1, (1.0,))), in_turns=False) for each in off])


def trial(ratio: float = 2.0, *, spread: float = 0.001, **fields: Any) -> FixTrial:
    given = {"times": times(ratio, spread=spread), "numbers": EQUAL, **fields}
    return FixTrial(fix="a setting", **given)


@pytest.mark.parametrize(
    ("tried", "gains", "says"),
    [
        (trial(), True, "measured: 2.00× "),
        (trial(numbers=CLOSE), True, "the results agree to 1.2e-07"),
        (trial(numbers=UNKNOWN), True, "not compared: one of them was not kept"),
        (trial(numbers=OFF), False, "no gain: the results differ by 3.0e-03; 2.00× "),
        (trial(numbers=OFF, other_numbers="another precision"), True, "differ by 3.0e-03: another precision"),
        (trial(1.0), False, "no faster: 1.00× "),
        (trial(1.1, spread=0.2), False, "inconclusive: "),
        (trial(bytes=(120, 80)), True, "measured: a call holds 80 B instead of 120 B; it is faster: 2.00× "),
        (trial(1.1, spread=0.2, bytes=(120, 80)), True, "whether it is faster is not known"),
        (trial(0.5, bytes=(120, 80)), False, "no gain: a call holds 80 B instead of 120 B; it is slower"),
        (trial(1.0, bytes=(120, 120)), False, "no gain: a call holds 120 B instead of 120 B"),
        (FixTrial(fix="a setting", failed=True, reason="exit code 1"), False, "failed: exit code 1"),
    ],
)
def test_the_sentence_claims_what_was_measured(tried, gains, says):
    sentence = trial_sentence(tried)
    assert says in sentence
    assert tried.gains is gains
    assert sentence.startswith("measured: ") is gains
