"""Everything that is derived from a session's raw facts, for screens and reports alike. Shown, never stored.

The names are loaded when they are first used: what is derived from a program needs no numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.lazy import lazy_names

if TYPE_CHECKING:
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

_HOME = {
    "RunResult": "derive",
    "Versus": "derive",
    "result": "derive",
    "results": "derive",
    "Crossover": "sweeps",
    "SweepGroup": "sweeps",
    "SweepLine": "sweeps",
    "sweep_groups": "sweeps",
}

__getattr__ = lazy_names("jaxprof.results", _HOME)
