"""The distribution of samples and their order in time."""

from __future__ import annotations

import pytest

from jaxprof.stats import summarise, two_modes
from jaxprof.tui.kit.plots import distribution, trend
from tui.kit.drawings import SAMPLES, SIZES, fills, lines_of
from tui.session_tapes import Tape


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_distribution_fills_its_room(width: int, height: int) -> None:
    assert fills(distribution(SAMPLES, summarise(SAMPLES), width, height), width, height)


def test_a_distribution_counts_what_lies_beyond_its_scale_and_marks_the_median() -> None:
    samples = [*SAMPLES, 5e-3, 6e-3]
    summary = summarise(samples)
    lines = lines_of(distribution(samples, summary, 60, 8))
    assert lines[-1].endswith("+2 slower")
    assert lines[-2].count("┻") == 1
    assert "━" in lines[-2]
    assert lines[0].strip()
    assert all(character in " ▁▂▃▄▅▆▇█" for line in lines[:-2] for character in line)


def test_two_modes_are_two_humps_on_one_scale_and_in_words() -> None:
    """Most calls are fast: of the median alone, the slow ones are outliers, and would not be drawn."""
    fast, slow = Tape().noise(1.2e-3, 60), Tape().noise(3.4e-3, 40)
    samples = [*fast, *slow]
    modes = two_modes(samples)
    assert modes is not None
    said, *bars, axis, numbers = lines_of(distribution(samples, summarise(samples), 60, 9, modes=modes))
    assert said.rstrip() == "two modes: 1.20 ms (60 %), 3.39 ms (40 %)"
    empty = [column for column in range(60) if all(not row[column : column + 1].strip() for row in bars)]
    assert len(empty) > 20, "the valley"
    assert axis.index("┻") < empty[0]
    assert axis.rindex("┻") > empty[-1]
    assert axis.count("┻") == 2, "none at the median, which is typical of neither"
    assert "slower" not in numbers
    assert "outlier" not in trend(samples, summarise(samples), 60, 9, modes=modes).plain
    assert "two modes" not in distribution(fast, summarise(fast), 60, 9, modes=two_modes(fast)).plain


def test_a_trend_marks_outliers_at_the_edge_that_they_pass() -> None:
    samples = [*SAMPLES, 5e-3, 1e-6]
    lines = lines_of(trend(samples, summarise(samples), 60, 9))
    assert "▲" in lines[0]
    assert "▼" in lines[-2]
    assert "62 samples   ▲ 2 outliers" in lines[-1]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_trend_fills_its_room(width: int, height: int) -> None:
    assert fills(trend(SAMPLES, summarise(SAMPLES), width, height), width, height)
