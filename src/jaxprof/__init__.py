"""jaxprof: a terminal profiler for JAX.

The public names are loaded when they are first used, so that `import jaxprof` costs nothing and never brings in jax.
"""

from __future__ import annotations

from jaxprof.lazy import lazy_names

TYPE_CHECKING = False  # `typing` itself would be half of what it costs to begin recording a program
if TYPE_CHECKING:
    from jaxprof.api import Recording, Session, load, profile, record
    from jaxprof.workloads.user import workload

__version__ = "0.1.0"

__all__ = ["Recording", "Session", "__version__", "load", "profile", "record", "workload"]

_HOME = {
    "Recording": "api.recording",
    "Session": "api.session",
    "load": "api.session",
    "load_ipython_extension": "api.magics",
    "profile": "api.profiling",
    "record": "api.recording",
    "workload": "workloads.user",
}

__getattr__ = lazy_names("jaxprof", _HOME)
