"""Where values lie and how sure that is; quantiles of t; the summary of samples; when compiling pays; two modes, which
are said where there are two, and of one mode (skewed, drifting, with outliers) next to never."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import figures_text, held, held_cases
from jaxprof.analysis.runs.run_result import break_even_calls
from jaxprof.stats.blocks import Location, Spread, exp_in_range, launch_mean, location, of_difference, t_quantile
from jaxprof.stats.summary import (
    _has_valley,
    bootstrap_medians,
    histogram,
    median_interval,
    outliers,
    summarise,
    two_modes,
)
from stats.machines import neighbours


def share_covered(persistence, count, sessions=300):
    """How often the 95 % interval holds the truth; where no interval is given, nothing is missed."""
    random = np.random.default_rng(17)
    covered = 0
    for _ in range(sessions):
        found = location(neighbours(random, count, persistence))
        covered += found.spread is None or abs(found.value) <= found.spread.half_width(0.95)
    return covered / sessions


def test_interval_coverage_of_independent_values():
    random = np.random.default_rng(5)
    found = [location(random.normal(size=60).tolist()) for _ in range(300)]
    halves = [one.spread.half_width(0.95) for one in found if one.spread]
    assert len(halves) == 300
    assert share_covered(0.0, 60) >= 0.94
    assert np.median(halves) <= 1.4 * 1.96 * np.std([one.value for one in found])


@pytest.mark.parametrize(("persistence", "count", "least"), [(0.6, 40, 0.87), (0.9, 60, 0.86), (0.9, 200, 0.93)])
def test_values_that_are_alike_are_covered_or_refused(persistence, count, least):
    assert share_covered(persistence, count) >= least


def test_a_step_amounts_to_too_few_values():
    noise = np.random.default_rng(1).normal(size=40) * 0.01
    assert location([*noise[:20], *(1 + noise[20:])]).spread is None
    assert location(noise.tolist()).spread is not None


def test_a_quarter_of_the_values_may_be_anything():
    quiet = np.random.default_rng(2).normal(size=40)
    spoilt = location((quiet + 1000 * (np.arange(40) % 5 == 0)).tolist())
    assert abs(spoilt.value) < 0.3
    assert spoilt.spread.half_width(0.95) < 1


def test_the_error_is_that_of_winsorised_values():
    # Of eight values two are left out at either end: of 1..8, 3..6 stay, and the others count as 3 or as 6.
    found = location([1, 8, 2, 7, 4, 6, 3, 5])
    assert found.value == 4.5
    winsorised = [3, 6, 3, 6, 4, 6, 3, 5]
    assert found.spread == Spread(pytest.approx(2 * np.std(winsorised, ddof=1) / math.sqrt(8)), 3)


def errors_by_definition(values):
    """The ways to allow for likeness, written out: by the correlation of neighbours, and by merging them."""
    count = len(values)
    kept = sorted(values)[count // 4 : count - count // 4]
    bounded = np.clip(values, kept[0], kept[-1]) * count / len(kept)
    off = bounded - bounded.mean()
    seen = (off[1:] * off[:-1]).sum() / (off**2).sum()
    alike = min(seen + (1 + 4 * seen) / count, 0.99)
    independent = count * (1 - alike) / (1 + alike) if alike >= count**-0.5 else count
    variance = (off**2).sum() / (count - count / independent)
    found = [Spread(math.sqrt(variance / independent), min(int(independent) - 1, len(kept) - 1))]
    while len(bounded) >= 12:
        bounded = bounded[: len(bounded) // 2 * 2].reshape(-1, 2).mean(axis=1)
        batches = len(bounded)
        found.append(Spread(bounded.std(ddof=1) / math.sqrt(batches), min(batches - 1, len(kept) - 1)))
    return found


@pytest.mark.parametrize(("persistence", "count"), [(0.0, 11), (0.0, 12), (0.5, 45), (0.7, 200), (0.999, 1500)])
def test_of_the_ways_to_allow_for_likeness_the_widest_counts(persistence, count):
    random = np.random.default_rng(count)
    widest = set()
    for _ in range(30):
        values = neighbours(random, count, persistence)
        errors = errors_by_definition(values)
        which = max(range(len(errors)), key=lambda at: errors[at].half_width(0.95))
        found = location(values).spread
        if found is None:
            assert errors[0].degrees < 4
            continue
        widest.add(which)
        assert (found.standard_error, found.degrees) == pytest.approx(
            (errors[which].standard_error, errors[which].degrees)
        )
    assert len(widest) > (12 <= count <= 200), "each has its day"


def test_error_of_few_and_of_constant_values():
    assert [location(list(range(count))) for count in (1, 2, 4)] == [Location(at, None) for at in (0, 0.5, 1.5)]
    assert location([2.0] * 30).spread == Spread(0.0, pytest.approx(15, abs=1))
    rounded = location([2.0] * 15 + [2.0 + 4e-16] * 15).spread
    assert rounded.standard_error < 1e-15, "a step of one rounding error is no step"


def test_launch_mean_has_both_errors():
    found = launch_mean([Location(1.0, Spread(0.3, 4)), Location(2.0, Spread(0.4, 6)), Location(6.0, Spread(0.0, 5))])
    assert found.value == 3.0
    assert found.between == Spread(pytest.approx(math.sqrt(7 / 3)), 2)
    assert found.within == Spread(pytest.approx(0.5 / 3), 15)
    assert found.between_share == pytest.approx(1 - (0.25 / 9) / (7 / 3))
    unknown = launch_mean([Location(1.0, Spread(0.3, 4)), Location(2.0, None)])
    assert unknown.within is None
    assert unknown.between_share is None
    assert len(unknown.spreads) == 1
    assert launch_mean([Location(1.0, None)]).spreads == ()


def test_the_error_of_a_difference_is_welchs():
    # Of 3 ± 1.2 from 4 values and 5 ± 0.5 from 10.
    found = of_difference(Spread(1.2, 3), Spread(0.5, 9))
    assert found.standard_error == pytest.approx(1.3)
    assert found.degrees == pytest.approx(1.69**2 / (1.44**2 / 3 + 0.25**2 / 9))
    assert of_difference(Spread(0.0, 3), Spread(0.0, 2)) == Spread(0.0, 5)


def test_an_end_as_far_as_can_be_is_still_a_number_above_zero():
    assert exp_in_range(1.5) == math.exp(1.5)
    assert exp_in_range(1e6) == math.exp(700)
    assert exp_in_range(-1e6) == math.exp(-700) > 0


@pytest.mark.parametrize(("between", "share"), [(0.0, 0.0), (0.49, 0.0), (1.0, 0.75)])
def test_between_share_of_alike_launches(between, share):
    """Of 0.49 it is 0.245 between launches, and 0.25 within them."""
    found = launch_mean([Location(0.0, Spread(0.3, 4)), Location(between, Spread(0.4, 4))])
    assert found.between_share == pytest.approx(share)


TABLE = {
    (0.6, 1): 0.3249197,
    (0.75, 1): 1.0,
    (0.995, 1): 63.65674,
    (0.95, 2): 2.91999,
    (0.975, 2): 4.30265,
    (0.9995, 3): 12.92398,
    (0.975, 4): 2.77645,
    (0.995, 5): 4.03214,
    (0.95, 30): 1.69726,
    (0.975, 120): 1.97993,
    (0.975, math.inf): 1.959964,
}
"""From the tables of t (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, with more digits)."""


@pytest.mark.parametrize(("where", "value"), TABLE.items(), ids=str)
def test_quantiles_are_those_of_the_tables(where, value):
    assert t_quantile(*where) == pytest.approx(value, rel=2e-6)
    assert t_quantile(1 - where[0], where[1]) == pytest.approx(-value, rel=2e-6)


@pytest.mark.parametrize("degrees", [0.7, 2.5, 7.25, 33.3])
def test_t_quantile_of_fractional_degrees(degrees):
    end = t_quantile(0.975, degrees)
    t = np.linspace(0, end, 200_001)
    log_scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    density = np.exp(log_scale - (degrees + 1) / 2 * np.log1p(t**2 / degrees))
    between = (density[1:] + density[:-1]).sum() / 2 * (t[1] - t[0])
    assert between == pytest.approx(0.475, abs=1e-6)


@pytest.mark.parametrize("count", [5, 6, 50])
def test_bootstrap_medians_match_the_textbook(count):
    random = np.random.default_rng(7)
    samples = random.lognormal(size=count)
    textbook = np.median(random.choice(samples, size=(20_000, count)), axis=1)
    drawn = bootstrap_medians(samples.tolist(), draws=20_000)
    assert np.std(drawn) == pytest.approx(np.std(textbook), rel=0.05)
    for level in (0.1, 0.5, 0.9):  # values repeat, so compare how much lies below the textbook's quantile
        edge = np.quantile(textbook, level)
        assert (drawn <= edge).mean() == pytest.approx((textbook <= edge).mean(), abs=0.03)


def test_the_interval_covers_the_true_median_as_often_as_it_says():
    random = np.random.default_rng(11)
    intervals = [median_interval(random.exponential(size=40).tolist()) for _ in range(400)]
    assert 0.91 <= sum(low <= np.log(2) <= high for low, high in intervals) / 400 <= 0.985


SAMPLES = {
    "five": [1.0, 2.0, 3.0, 5.0, 9.0],
    "too few for an interval": [1.0, 2.0, 3.0, 5.0],
    "enough for a tail": [1.0] * 95 + [9.0] * 5,
    "one too few for a tail": [1.0] * 19,
    "the fewest for a tail": [1.0] * 20,
    "nothing": [0.0] * 6,
}


def test_what_is_told_of_samples():
    """As deviations from the median; the tail where there are samples enough, and an interval from five on."""
    summaries = {case: summarise(samples) for case, samples in SAMPLES.items()}
    told = {case: figures_text(each, {"half": each.relative_halfwidth}) for case, each in summaries.items()}
    held_cases("summaries.txt", told)
    five = summaries["five"]
    assert five.ci95 == (five.low, five.high) == median_interval(SAMPLES["five"])
    assert summarise([]) is None


def test_outliers_are_marked_and_constant_samples_have_none():
    assert outliers([1.0, 1.01, 0.99, 1.02, 0.98, 9.0]) == [False] * 5 + [True]
    assert outliers([2.0] * 10) == [False] * 10
    assert outliers([]) == []
    # Five times 1.4826 times the deviation of 1 from the median.
    around = [8.0, 9.0, 9.0, 10.0, 10.0, 11.0, 11.0]
    assert outliers([*around, 10 + 7.4]) == [False] * 8
    assert outliers([*around, 10 + 7.5]) == [False] * 7 + [True]


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=60), st.integers(1, 30))
def test_a_histogram_counts_every_sample(samples, bins):
    counts, low, high, above = histogram(samples, bins)
    below = sum(sample < low for sample in samples)
    assert low < high
    assert sum(counts) + above + below == len(samples)


def test_the_scale_of_a_histogram_ends_where_the_outliers_begin():
    assert histogram([1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 900.0], 4) == ([2, 1, 1, 2], 1.0, 5.0, 1)
    counts, low, high, above = histogram([2.0] * 7, 3)
    assert counts == [7, 0, 0]
    assert low == 2.0
    assert above == 0
    assert 2.0 < high < 2.0001


def test_what_is_paid_once_counts_from_the_first_call():
    assert [break_even_calls(1.0, 1.0, once + 1.0, 1.0) for once in (0.0, 0.5)] == [1, None]


SPENT, A_CALL = st.integers(1, 50), st.integers(1, 5)


@given(start=SPENT, call=A_CALL, baseline_start=SPENT, baseline_call=A_CALL)
def test_break_even_call(start, call, baseline_start, baseline_call):
    """Both totals are added up call by call, in whole seconds."""
    ours = [start + call * further for further in range(100)]
    theirs = [baseline_start + baseline_call * further for further in range(100)]
    ahead = [one <= other for one, other in zip(ours, theirs, strict=True)]
    first = next((calls for calls in range(1, 101) if all(ahead[calls - 1 :])), None)
    assert break_even_calls(baseline_start, baseline_call, start, call) == first


ONE_MODE = {
    "normal": lambda random, n: 1 + 0.05 * random.standard_normal(n),
    "lognormal": lambda random, n: random.lognormal(0, 0.5, n),
    "drift": lambda random, n: np.linspace(1, 3, n) * (1 + 0.02 * random.standard_normal(n)),
    "decay": lambda random, n: 1 + 3 * np.exp(-10 * np.arange(n) / n) + 0.02 * random.standard_normal(n),
    "heavy tail": lambda random, n: 1 + 0.3 * random.pareto(1.5, n),
    "outliers": lambda random, n: np.where(random.random(n) < 0.03, 5, 1) * (1 + 0.03 * random.standard_normal(n)),
    "wandering": lambda random, n: np.exp(0.23 * np.array(neighbours(random, n, 0.9))),
}
TWO_MODES = {
    "2 and 6": lambda random, n: np.where(random.random(n) < 0.5, 2, 6) * (1 + 0.05 * random.standard_normal(n)),
    "half as slow again": lambda random, n: np.where(random.random(n) < 0.6, 1, 1.5) * random.lognormal(0, 0.04, n),
}


def share_with_two(make, count, tries):
    random = np.random.default_rng(5)
    return sum(two_modes(make(random, count).tolist()) is not None for _ in range(tries)) / tries


@pytest.mark.parametrize("count", [25, 600])
@pytest.mark.parametrize("kind", ONE_MODE)
def test_one_mode_is_next_to_never_called_two(kind, count):
    assert share_with_two(ONE_MODE[kind], count, 300) <= 0.004


@pytest.mark.parametrize("kind", TWO_MODES)
def test_two_modes_are_seen(kind):
    assert share_with_two(TWO_MODES[kind], 400, 50) >= 0.9
    assert share_with_two(TWO_MODES[kind], 15, 50) == 0, "a dozen samples say nothing"


def test_what_is_said_of_them():
    """A change once and for all is told from taking turns."""
    random = np.random.default_rng(1)
    turns = np.where(np.arange(200) % 4 == 0, 6e-3, 2e-3) * (1 + 0.03 * random.standard_normal(200))
    held("modes.txt", figures_text(two_modes(turns.tolist()), two_modes(np.sort(turns).tolist())))


def mixed(**counts):
    """So many samples of each value: `_1_21=50` are 50 of 1.21."""
    return [float(name[1:].replace("_", ".")) for name, count in counts.items() for _ in range(count)]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (mixed(_1=40, _1_001=40, _1_1=40), mixed(_1=40, _1_5=40)),  # close
        # a valley holds a quarter of the lesser mode at most; halfway is the middle third of the way
        (mixed(_1=100, _2=26, _3=100), mixed(_1=100, _2=25, _3=100)),
        (mixed(_1=100, _1_7=26, _3=100), mixed(_1=100, _1_6=26, _3=100)),
        # chance makes a valley once in ten thousand times: (1 + n + ...) / 2 ** n
        (mixed(_1=13, _3=30), mixed(_1=14, _3=30)),
        (mixed(_1=16, _2=1, _3=30), mixed(_1=17, _2=1, _3=30)),
        # the lesser mode has a tenth of the samples
        (mixed(_1=181, _3=19), mixed(_1=180, _3=20)),
        (mixed(_1=19, _3=181), mixed(_1=20, _3=180)),
        # the slower one is a fifth slower
        (mixed(_1=50, _1_19=50), mixed(_1=50, _1_21=50)),
        ([], mixed(_1=50, _2=50)),
        ([0.0] * 50 + [1.0] * 50, mixed(_1=50, _2=50)),
        ([float("nan")] * 100, mixed(_1=50, _2=50)),
    ],
)
def test_samples_of_one_mode_and_near_ones_of_two(one, two):
    assert two_modes(one) is None
    assert two_modes(two) is not None


@pytest.mark.parametrize(("count", "seen"), [(19, False), (20, True)])
def test_valley_beyond_chance(count, seen):
    """Of 21 tosses of a coin two or fewer are heads once in 9 039, of 22 once in 16 513."""
    assert _has_valley(np.array([0.0] * count + [1.5] * 2 + [3.0] * count), 0.0, 3.0) == seen
