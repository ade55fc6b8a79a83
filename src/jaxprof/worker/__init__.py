"""The client of the engine: start it, ask it, follow it, cancel it, explain its end, and write what it says.

The names are loaded when they are first used: a program to be recorded is started before numpy could be imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.lazy import lazy_names

if TYPE_CHECKING:
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

_HOME = {
    "Conductor": "conductor",
    "Interpreter": "interpreter",
    "find_interpreter": "interpreter",
    "is_profile": "opening",
    "own_interpreter": "opening",
    "plan_profile": "opening",
    "profile_runs": "opening",
    "place": "placement",
    "Choice": "planning",
    "Planned": "planning",
    "Sweep": "planning",
    "expected_seconds": "planning",
    "plan_compiles": "planning",
    "plan_runs": "planning",
    "read_sweep": "planning",
    "EngineProcess": "process",
    "describe": "queries",
    "jax_devices": "queries",
}

__getattr__ = lazy_names("jaxprof.worker", _HOME)
