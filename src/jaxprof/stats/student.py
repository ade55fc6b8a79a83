"""Quantiles of Student's t distribution, without SciPy: importing `scipy.stats` costs more than most commands do.

The distribution function is a regularised incomplete beta function, worked out as its continued fraction (M. Abramowitz
and I. Stegun, "Handbook of Mathematical Functions", 26.5.8 and 26.7.1; evaluated with Lentz's method as W. J. Thompson
and A. R. Barnett have it, 1986) and inverted by bisection: good to nine digits from half a degree of freedom on.
"""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300


@lru_cache(maxsize=1024)
def t_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of a t variable with `degrees` > 0 degrees of freedom (a fraction is allowed).

    Raises ValueError where `probability` is not between 0 and 1, or `degrees` is not positive.
    """
    if not 0 < probability < 1 or not degrees > 0:
        raise ValueError(f"no t quantile at {probability} with {degrees} degrees of freedom")
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    degrees = min(degrees, 1e6)  # the normal distribution, to six digits; beyond, the gamma functions lose theirs
    tails = 2 * (1 - probability)
    # P(|T| > t) = I_x(degrees / 2, 1/2) at x = degrees / (degrees + t²); t² / degrees spans many powers of ten.
    low, high = math.log(1e-20), math.log(1e60)
    for _ in range(60):
        middle = (low + high) / 2
        if _tails(math.exp(middle), degrees) > tails:
            low = middle
        else:
            high = middle
    return math.sqrt(math.exp((low + high) / 2) * degrees)


def _tails(squared: float, degrees: float) -> float:
    """Return P(T² / degrees > `squared`)."""
    x, rest = 1 / (1 + squared), squared / (1 + squared)
    a, b = degrees / 2, 0.5
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * -math.log1p(squared) + b * math.log(rest)
    if x < (a + 1) / (a + b + 2):
        return math.exp(scale) * _fraction(a, b, x) / a
    return 1 - math.exp(scale) * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function at `x`, which must be below its mean or near it."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            value *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
