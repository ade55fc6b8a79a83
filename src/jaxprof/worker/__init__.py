"""The client of the engine: start it, ask it, follow it, cancel it, explain its end, and write what it says."""

from __future__ import annotations

from jaxprof.worker.conductor import Conductor
from jaxprof.worker.interpreter import Interpreter, find_interpreter
from jaxprof.worker.opening import is_profile, own_interpreter, plan_profile, profile_runs
from jaxprof.worker.placement import place
from jaxprof.worker.planning import Choice, Planned, Sweep, expected_seconds, plan_compiles, plan_runs, read_sweep
from jaxprof.worker.process import EngineProcess
from jaxprof.worker.queries import describe, jax_devices

__all__ = [
    "Choice",
    "Conductor",
    "EngineProcess",
    "Interpreter",
    "Planned",
    "Sweep",
    "describe",
    "expected_seconds",
    "find_interpreter",
    "is_profile",
    "jax_devices",
    "own_interpreter",
    "place",
    "plan_compiles",
    "plan_profile",
    "plan_runs",
    "profile_runs",
    "read_sweep",
]
