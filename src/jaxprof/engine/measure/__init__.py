"""Runs one variant and times it (stages, transfers, calls): everything in the engine that runs JAX.

It does not own the process: it restores what it changes (configuration, listeners, the garbage collector), prints
nothing, and reports everything as events. Importing it imports neither jax nor numpy, and no more than is needed: a
recorded program uses it only for the environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.lazy import lazy_names

if TYPE_CHECKING:
    from jaxprof.engine.measure.control import RunControl
    from jaxprof.engine.measure.run import measure_request, measure_workload

__all__ = ["RunControl", "measure_request", "measure_workload"]

_HOME = {"RunControl": "control", "measure_request": "run", "measure_workload": "run"}

if not TYPE_CHECKING:  # a wrong name is an error for a type checker
    __getattr__ = lazy_names("jaxprof.engine.measure", _HOME)
