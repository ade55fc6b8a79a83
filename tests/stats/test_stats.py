from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.stats import break_even_calls, histogram, median_interval, outliers, summarise, total_seconds
from jaxprof.stats.bootstrap import bootstrap_medians


@pytest.mark.parametrize("count", [5, 6, 21, 50])
def test_the_drawn_medians_have_the_distribution_of_the_textbook_bootstrap(count: int) -> None:
    random = np.random.default_rng(7)
    samples = random.lognormal(size=count)
    textbook = np.median(random.choice(samples, size=(20_000, count)), axis=1)
    drawn = bootstrap_medians(samples.tolist(), draws=20_000)
    assert np.std(drawn) == pytest.approx(np.std(textbook), rel=0.05)
    for level in (0.1, 0.5, 0.9):  # values repeat, so compare how much lies below the textbook's quantile
        edge = np.quantile(textbook, level)
        assert (drawn <= edge).mean() == pytest.approx((textbook <= edge).mean(), abs=0.03)


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    random = np.random.default_rng(11)
    inside = 0
    for _ in range(400):
        interval = median_interval(random.exponential(size=40).tolist())
        assert interval is not None
        inside += interval[0] <= np.log(2) <= interval[1]
    assert 0.91 <= inside / 400 <= 0.985


def test_under_five_samples_there_is_no_interval() -> None:
    summary = summarise([1.0, 2.0, 3.0, 4.0])
    assert summary is not None
    assert summary.ci95 is None
    assert summary.relative_halfwidth is None
    assert summarise([]) is None


def test_the_tail_is_told_where_there_are_samples_enough() -> None:
    summary = summarise([*([1.0] * 95), *([9.0] * 5)])
    assert summary is not None
    assert (summary.mean, summary.minimum, summary.maximum) == (pytest.approx(1.4), 1.0, 9.0)
    assert summary.p95 == pytest.approx(1.4)
    few, enough = summarise([1.0] * 19), summarise([1.0] * 20)
    assert few is not None
    assert few.p95 is None
    assert enough is not None
    assert enough.p95 == 1.0


def test_the_spread_is_told_as_deviations_from_the_median() -> None:
    summary = summarise([1.0, 2.0, 3.0, 5.0, 9.0])
    assert summary is not None
    assert (summary.count, summary.median, summary.mad) == (5, 3.0, 2.0)
    assert summary.relative_halfwidth == pytest.approx((summary.high - summary.low) / 2 / 3.0)  # type: ignore[operator]
    assert summary.ci95 == (summary.low, summary.high) == median_interval([1.0, 2.0, 3.0, 5.0, 9.0])
    nothing = summarise([0.0] * 6)
    assert nothing is not None
    assert (nothing.ci95, nothing.relative_halfwidth) == ((0.0, 0.0), None)


def test_the_same_samples_give_the_same_interval() -> None:
    samples = [1.0, 1.1, 1.2, 0.9, 1.05, 1.3]
    assert median_interval(samples) == median_interval(list(samples))


def test_outliers_are_marked_and_constant_samples_have_none() -> None:
    assert outliers([1.0, 1.01, 0.99, 1.02, 0.98, 9.0]) == [False] * 5 + [True]
    assert outliers([2.0] * 10) == [False] * 10
    assert outliers([]) == []
    # Five times 1.4826 times the deviation of 1 from the median.
    around = [8.0, 9.0, 9.0, 10.0, 10.0, 11.0, 11.0]
    assert outliers([*around, 10 + 7.4]) == [False] * 8
    assert outliers([*around, 10 + 7.5]) == [False] * 7 + [True]


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=60), st.integers(1, 30))
def test_a_histogram_counts_every_sample(samples: list[float], bins: int) -> None:
    counts, low, high, above = histogram(samples, bins)
    below = sum(sample < low for sample in samples)
    assert low < high
    assert sum(counts) + above + below == len(samples)


def test_the_scale_of_a_histogram_ends_where_the_outliers_begin() -> None:
    assert histogram([1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 900.0], 4) == ([2, 1, 1, 2], 1.0, 5.0, 1)
    counts, low, high, above = histogram([2.0] * 7, 3)
    assert (counts, low, above) == ([7, 0, 0], 2.0, 0)
    assert 2.0 < high < 2.0001
    for samples, bins in (([], 3), ([1.0], 0)):
        with pytest.raises(ValueError, match="wants samples and bins"):
            histogram(samples, bins)


def test_what_is_paid_once_counts_from_the_first_call() -> None:
    assert total_seconds(0, 5.0, 2.0, 1.0) == 0
    assert total_seconds(1, 5.0, 2.0, 1.0) == 7
    assert total_seconds(4, 5.0, 2.0, 1.0) == 10
    assert break_even_calls(1.0, 0.0, 1.0, 1.0) == 1
    assert break_even_calls(1.0, 0.5, 1.0, 1.0) is None
    assert break_even_calls(3.0, 5.0, 2.0, 1.0) == 3


@given(
    baseline=st.floats(1e-6, 1.0),
    once=st.floats(0.0, 10.0),
    first=st.floats(1e-6, 1.0),
    call=st.floats(1e-6, 1.0),
)
def test_break_even_agrees_with_a_simulated_total(baseline: float, once: float, first: float, call: float) -> None:
    calls = break_even_calls(baseline, once, first, call)
    if calls is None:
        assert call >= baseline
        assert total_seconds(1000, once, first, call) > 1000 * baseline * (1 - 1e-9), "but for rounding, as below"
        return
    if calls > 20_000:
        return
    spent, paid, count = once, 0.0, 0
    while count < calls:
        count += 1
        spent += first if count == 1 else call
        paid += baseline
        if count < calls:
            assert spent > paid * (1 - 1e-9)
    assert spent <= paid * (1 + 1e-9)
