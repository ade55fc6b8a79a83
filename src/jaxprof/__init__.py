"""jaxprof: a terminal profiler for JAX.

The public names are loaded when they are first used, so that `import jaxprof` costs nothing and never brings in jax.
"""

from __future__ import annotations

from jaxprof.base import __version__, lazy_names

TYPE_CHECKING = False  # importing `typing` would take half of the time that starting a recording takes
if TYPE_CHECKING:
    from jaxprof.api.recording import Recording, record
    from jaxprof.api.session import Session, load, load_hlo, profile
    from jaxprof.base.errors import FileRefusedError, JaxprofError, StorageError, UsageError
    from jaxprof.workloads.decorator import workload

__all__ = [
    "FileRefusedError",
    "JaxprofError",
    "Recording",
    "Session",
    "StorageError",
    "UsageError",
    "__version__",
    "load",
    "load_hlo",
    "profile",
    "record",
    "workload",
]

_HOME = {
    "FileRefusedError": "base.errors",
    "JaxprofError": "base.errors",
    "Recording": "api.recording",
    "Session": "api.session",
    "StorageError": "base.errors",
    "UsageError": "base.errors",
    "load": "api.session",
    "load_hlo": "api.session",
    "load_ipython_extension": "api.magics",
    "profile": "api.session",
    "record": "api.recording",
    "workload": "workloads.decorator",
}

if not TYPE_CHECKING:  # a wrong name is an error for a type checker
    __getattr__ = lazy_names("jaxprof", _HOME)


def __dir__() -> list[str]:
    """Return only the public names, so that completion and `help` show just those."""
    return sorted(__all__)
