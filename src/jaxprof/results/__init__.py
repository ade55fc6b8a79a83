"""Everything that is derived from a session's raw facts, for screens and reports alike. Shown, never stored."""

from __future__ import annotations

from jaxprof.results.derive import RunResult, Versus, result, results
from jaxprof.results.sweeps import Crossover, SweepGroup, SweepLine, sweep_groups

__all__ = [
    "Crossover",
    "RunResult",
    "SweepGroup",
    "SweepLine",
    "Versus",
    "result",
    "results",
    "sweep_groups",
]
