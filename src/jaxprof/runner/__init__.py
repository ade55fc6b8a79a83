"""The client of the engine: starts it, sends requests, follows and cancels runs, explains their end, and writes what it
reports.

The names are loaded on first use: a program to be recorded is started before numpy could be imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.lazy import lazy_names

if TYPE_CHECKING:
    from jaxprof.runner.engine_process import EngineProcess, describe, jax_devices
    from jaxprof.runner.interpreter import Interpreter, find_interpreter, own_interpreter
    from jaxprof.runner.planning import (
        PlannedRun,
        PlanOptions,
        Sweep,
        plan_compiles,
        plan_runs,
        read_sweep,
    )
    from jaxprof.runner.profiles import plan_profile, session_name, session_of_profile
    from jaxprof.runner.requests import place
    from jaxprof.runner.scheduler import Scheduler

__all__ = [
    "EngineProcess",
    "Interpreter",
    "PlanOptions",
    "PlannedRun",
    "Scheduler",
    "Sweep",
    "describe",
    "find_interpreter",
    "jax_devices",
    "own_interpreter",
    "place",
    "plan_compiles",
    "plan_profile",
    "plan_runs",
    "read_sweep",
    "session_name",
    "session_of_profile",
]

_HOME = {
    "Scheduler": "scheduler",
    "Interpreter": "interpreter",
    "find_interpreter": "interpreter",
    "own_interpreter": "interpreter",
    "plan_profile": "profiles",
    "session_of_profile": "profiles",
    "session_name": "profiles",
    "place": "requests",
    "PlanOptions": "planning",
    "PlannedRun": "planning",
    "Sweep": "planning",
    "plan_compiles": "planning",
    "plan_runs": "planning",
    "read_sweep": "planning",
    "EngineProcess": "engine_process",
    "describe": "engine_process",
    "jax_devices": "engine_process",
}

if not TYPE_CHECKING:  # a wrong name is an error for a type checker
    __getattr__ = lazy_names("jaxprof.runner", _HOME)
