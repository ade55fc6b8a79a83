"""Running one variant and timing it: stages, transfers, calls. With `trace`, the only room that knows JAX.

It does not own the process: what it changes (configuration, listeners, the garbage collector) it puts back, it prints
nothing, and everything that it finds leaves as events. Importing it imports neither jax nor numpy.
"""

from __future__ import annotations

from jaxprof.measure.control import RunControl
from jaxprof.measure.run import measure_request, measure_workload

__all__ = ["RunControl", "measure_request", "measure_workload"]
