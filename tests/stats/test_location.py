from __future__ import annotations

import math

import numpy as np
import pytest

from jaxprof.stats.location import Location, Spread, bounded_exp, launch_mean, location, of_difference


def alike(random: np.random.Generator, count: int, persistence: float) -> list[float]:
    """A first-order autoregression with standard deviation 1."""
    values = [random.normal()]
    for _ in range(count - 1):
        values.append(persistence * values[-1] + random.normal() * math.sqrt(1 - persistence**2))
    return values


def share_covered(persistence: float, count: int, sessions: int = 300) -> float:
    """How often the 95 % interval holds the truth; where no interval is given, nothing is missed."""
    random = np.random.default_rng(17)
    covered = 0
    for _ in range(sessions):
        found = location(alike(random, count, persistence))
        covered += found.spread is None or abs(found.value) <= found.spread.half_width(0.95)
    return covered / sessions


def test_the_interval_of_independent_values_holds_the_truth_and_is_not_much_wider_than_it_has_to_be() -> None:
    random = np.random.default_rng(5)
    found = [location(random.normal(size=60).tolist()) for _ in range(300)]
    halves = [one.spread.half_width(0.95) for one in found if one.spread]
    assert len(halves) == 300
    assert share_covered(0.0, 60) >= 0.94
    assert np.median(halves) <= 1.4 * 1.96 * np.std([one.value for one in found])


@pytest.mark.parametrize(("persistence", "count", "least"), [(0.6, 40, 0.87), (0.9, 60, 0.86), (0.9, 200, 0.93)])
def test_values_that_are_alike_are_covered_or_refused(persistence: float, count: int, least: float) -> None:
    assert share_covered(persistence, count) >= least


def test_a_step_amounts_to_too_few_values() -> None:
    noise = np.random.default_rng(1).normal(size=40) * 0.01
    assert location([*noise[:20], *(1 + noise[20:])]).spread is None
    assert location(noise.tolist()).spread is not None


def test_a_quarter_of_the_values_may_be_anything() -> None:
    random = np.random.default_rng(2)
    quiet = random.normal(size=40)
    burst = quiet.copy()
    burst[::5] += 1000
    there, spoilt = location(quiet.tolist()), location(burst.tolist())
    assert spoilt.value == pytest.approx(there.value, abs=0.3)
    assert spoilt.spread is not None
    assert spoilt.spread.half_width(0.95) < 1


def test_the_error_is_that_of_winsorised_values() -> None:
    # Of eight values two are left out at either end: of 1..8, 3..6 stay, and the others count as 3 or as 6.
    found = location([1, 8, 2, 7, 4, 6, 3, 5])
    assert found.value == 4.5
    winsorised = [3, 6, 3, 6, 4, 6, 3, 5]
    assert found.spread == Spread(pytest.approx(2 * np.std(winsorised, ddof=1) / math.sqrt(8)), 3)


def errors_by_definition(values: list[float]) -> list[Spread]:
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


@pytest.mark.parametrize(
    ("persistence", "count"), [(0.0, 11), (0.0, 12), (0.0, 60), (0.5, 45), (0.7, 200), (0.999, 1500)]
)
def test_of_the_ways_to_allow_for_likeness_the_widest_counts(persistence: float, count: int) -> None:
    random = np.random.default_rng(count)
    widest = set()
    for _ in range(30):
        values = alike(random, count, persistence)
        errors = errors_by_definition(values)
        halves = [error.half_width(0.95) for error in errors]
        which = halves.index(max(halves))
        found = location(values).spread
        if found is None:
            assert errors[0].degrees < 4
            continue
        widest.add(which)
        assert found.standard_error == pytest.approx(errors[which].standard_error)
        assert found.degrees == errors[which].degrees
    assert len(widest) > (12 <= count <= 200), "each has its day"


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_few_values_have_no_error(count: int) -> None:
    found = location(list(range(count)))
    assert (found.value, found.spread) == ((count - 1) / 2, None)


def test_constant_values_have_none_to_speak_of_and_no_values_no_place() -> None:
    assert location([2.0] * 30).spread == Spread(0.0, pytest.approx(15, abs=1))
    rounded = location([2.0] * 15 + [2.0 + 4e-16] * 15).spread
    assert rounded is not None, "a step of one rounding error is no step"
    assert rounded.standard_error < 1e-15
    with pytest.raises(ValueError, match="no values"):
        location([])


def test_a_mean_over_launches_has_the_error_of_its_launches_and_that_of_their_values() -> None:
    found = launch_mean([Location(1.0, Spread(0.3, 4)), Location(2.0, Spread(0.4, 6)), Location(6.0, Spread(0.0, 5))])
    assert found.value == 3.0
    assert found.between == Spread(pytest.approx(math.sqrt(7 / 3)), 2)
    assert found.within == Spread(pytest.approx(0.5 / 3), 15)
    assert found.between_share == pytest.approx(1 - (0.25 / 9) / (7 / 3))
    unknown = launch_mean([Location(1.0, Spread(0.3, 4)), Location(2.0, None)])
    assert (unknown.within, unknown.between_share, len(unknown.spreads)) == (None, None, 1)
    assert launch_mean([Location(1.0, None)]).spreads == ()
    with pytest.raises(ValueError, match="no launches"):
        launch_mean([])


def test_the_error_of_a_difference_is_welchs() -> None:
    # Of 3 ± 1.2 from 4 values and 5 ± 0.5 from 10.
    found = of_difference(Spread(1.2, 3), Spread(0.5, 9))
    assert found.standard_error == pytest.approx(1.3)
    assert found.degrees == pytest.approx(1.69**2 / (1.44**2 / 3 + 0.25**2 / 9))
    assert of_difference(Spread(0.0, 3), Spread(0.0, 2)) == Spread(0.0, 5)


def test_an_end_as_far_as_can_be_is_still_a_number_above_zero() -> None:
    assert bounded_exp(1.5) == math.exp(1.5)
    assert bounded_exp(1e6) == math.exp(700)
    assert bounded_exp(-1e6) == math.exp(-700) > 0


def test_launches_that_differ_less_than_their_values_allow_owe_nothing_to_the_launch() -> None:
    def share(between: float) -> float | None:
        return launch_mean([Location(0.0, Spread(0.3, 4)), Location(between, Spread(0.4, 4))]).between_share

    assert share(0.0) == 0.0
    assert share(0.49) == 0.0, "0.245 between launches, 0.25 within them"
    assert share(1.0) == pytest.approx(0.75)
