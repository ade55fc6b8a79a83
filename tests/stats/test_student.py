from __future__ import annotations

import math

import numpy as np
import pytest

from jaxprof.stats.student import t_quantile

TABLE = {
    (0.75, 1): 1.0,
    (0.95, 1): 6.31375,
    (0.975, 1): 12.70620,
    (0.995, 1): 63.65674,
    (0.95, 2): 2.91999,
    (0.975, 2): 4.30265,
    (0.975, 3): 3.18245,
    (0.9995, 3): 12.92398,
    (0.975, 4): 2.77645,
    (0.995, 5): 4.03214,
    (0.975, 10): 2.22814,
    (0.95, 30): 1.69726,
    (0.975, 120): 1.97993,
    (0.975, math.inf): 1.959964,
}
"""From the tables of t (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, with more digits)."""


@pytest.mark.parametrize(("where", "value"), TABLE.items(), ids=str)
def test_quantiles_are_those_of_the_tables(where: tuple[float, float], value: float) -> None:
    assert t_quantile(*where) == pytest.approx(value, rel=2e-6)
    assert t_quantile(1 - where[0], where[1]) == pytest.approx(-value, rel=2e-6)


@pytest.mark.parametrize("degrees", [0.7, 2.5, 7.25, 33.3])
def test_a_fraction_of_a_degree_of_freedom_integrates_to_its_probability(degrees: float) -> None:
    end = t_quantile(0.975, degrees)
    t = np.linspace(0, end, 200_001)
    log_scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    density = np.exp(log_scale - (degrees + 1) / 2 * np.log1p(t**2 / degrees))
    between = (density[1:] + density[:-1]).sum() / 2 * (t[1] - t[0])
    assert between == pytest.approx(0.475, abs=1e-6)


def test_the_median_is_zero_and_a_farther_tail_is_farther_out() -> None:
    assert t_quantile(0.5, 3) == 0
    for degrees in (1, 2, 40):
        quantiles = [t_quantile(1 - 10.0**-digits, degrees) for digits in range(1, 8)]
        assert quantiles == sorted(set(quantiles))


@pytest.mark.parametrize(("probability", "degrees"), [(0, 3), (1, 3), (1.2, 3), (0.9, 0), (0.9, -1), (0.9, math.nan)])
def test_what_has_no_quantile_is_refused(probability: float, degrees: float) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(probability, degrees)
