"""Summaries and intervals of raw samples, and the comparisons made of them. NumPy only, no state, no rounding.

Medians and not means: a shared machine only ever makes a call slower, and a few slow calls must not move the figure.
"""

from __future__ import annotations

from jaxprof.stats.breakeven import break_even_calls, total_seconds
from jaxprof.stats.compare import Speedup, speedup
from jaxprof.stats.summary import Summary, histogram, median_interval, outliers, summarise

__all__ = [
    "Speedup",
    "Summary",
    "break_even_calls",
    "histogram",
    "median_interval",
    "outliers",
    "speedup",
    "summarise",
    "total_seconds",
]
