"""The built-in workloads, each in a file of its own, written with `@workload` as a user would.

Those files take `jax`, `jnp` and `np` from here instead of importing them: listing the workloads imports none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from jaxprof.workloads.decorator import declaration_of
from jaxprof.workloads.function import workload_of
from jaxprof.workloads.model import DeferredModule, Workload

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    import numpy as np
else:
    jax, jnp, np = DeferredModule("jax"), DeferredModule("jax.numpy"), DeferredModule("numpy")

__all__ = ["jax", "jnp", "load", "np"]


def load(module: str) -> Workload:
    """Return the workload that the file `module` of this folder declares; its name has `-` for `_`."""
    names = vars(import_module(f"{__name__}.{module}"))
    (function,) = (value for value in names.values() if callable(value) and declaration_of(value) is not None)
    return workload_of(function, origin="built in", name=module.replace("_", "-"))
