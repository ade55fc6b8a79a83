"""Everything derived from a session's raw facts, for screens and reports alike. Derived values are shown, never stored.

The names are loaded on first use: the analysis of a program needs no numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.lazy import lazy_names

if TYPE_CHECKING:
    from jaxprof.analysis.run_result import RunResult, Versus, result, results
    from jaxprof.analysis.sweeps import Crossover, SweepGroup, SweepLine, sweep_groups

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

_HOME = {
    "RunResult": "run_result",
    "Versus": "run_result",
    "result": "run_result",
    "results": "run_result",
    "Crossover": "sweeps",
    "SweepGroup": "sweeps",
    "SweepLine": "sweeps",
    "sweep_groups": "sweeps",
}

if not TYPE_CHECKING:  # a wrong name is an error for a type checker
    __getattr__ = lazy_names("jaxprof.analysis", _HOME)
