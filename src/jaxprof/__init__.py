"""jaxprof: a terminal profiler for JAX.

The public names are loaded when they are first used, so that `import jaxprof` costs nothing and never brings in jax.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` itself would be half of what it costs to begin recording a program
if TYPE_CHECKING:
    from typing import Any

    from jaxprof.api import Recording, Session, load, profile, record
    from jaxprof.workloads.user import workload

__version__ = "0.1.0"

__all__ = ["Recording", "Session", "__version__", "load", "profile", "record", "workload"]

_HOME = {
    "Recording": "jaxprof.api.recording",
    "Session": "jaxprof.api.session",
    "load": "jaxprof.api.session",
    "load_ipython_extension": "jaxprof.api.magics",
    "profile": "jaxprof.api.profiling",
    "record": "jaxprof.api.recording",
    "workload": "jaxprof.workloads.user",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'jaxprof' has no attribute {name!r}")
