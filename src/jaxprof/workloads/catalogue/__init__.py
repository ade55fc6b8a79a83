"""The built-in workloads, in files by what they are about, written with `@workload` as a user would.

Those files take `jax`, `jnp` and `np` from here instead of importing them: listing the workloads imports none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from jaxprof.workloads.decorator import declaration_of
from jaxprof.workloads.function import workload_of
from jaxprof.workloads.model import DeferredModule, Parameter, Workload

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    import numpy as np
else:
    jax, jnp, np = DeferredModule("jax"), DeferredModule("jax.numpy"), DeferredModule("numpy")

__all__ = ["jax", "jnp", "load", "np", "sizes"]


def sizes(**descriptions: str) -> dict[str, Parameter]:
    """Return parameters that are whole numbers from 1, with these descriptions."""
    return {name: Parameter(description=text, minimum=1) for name, text in descriptions.items()}


def load(file: str, name: str) -> Workload:
    """Return the workload that a file of this folder declares under that name."""
    for value in vars(import_module(f"{__name__}.{file}")).values():
        declared = declaration_of(value) if callable(value) else None
        if declared is not None and declared.name == name:
            return workload_of(value, origin="built in", name=name)
    raise LookupError(name)
