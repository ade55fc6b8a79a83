"""The built-in workloads by name. Neither this nor reading a declaration imports jax.

Listing the names imports nothing: the first frame of the app, and shell completion, need no more.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from jaxprof.base.errors import unknown_name

if TYPE_CHECKING:
    from jaxprof.workloads.model import Workload, WorkloadInfo

CATALOGUE = {
    "matmul": "products",
    "matmul-uniform": "products",
    "selu": "arrays",
    "batch-matmul-mean": "products",
    "grad-logistic": "derivatives",
    "grad-nested": "derivatives",
    "hessian": "derivatives",
    "vjp-jvp": "derivatives",
    "vmap": "products",
    "transfer": "arrays",
    "triad": "arrays",
    "gemm-peak": "products",
    "reduce": "arrays",
    "sort": "arrays",
    "fft": "arrays",
    "conv2d": "networks",
    "layernorm": "networks",
    "attention": "networks",
    "scan-rnn": "networks",
    "mlp-train-step": "networks",
}
"""Workload → the file under `catalogue` that declares it, in the order of the list."""


@cache
def load_built_in(name: str) -> Workload:
    """Return the built-in workload of that name. Raises UsageError with similar names."""
    if name not in CATALOGUE:
        raise unknown_name("workload", name, CATALOGUE)
    catalogue = import_module(
        "jaxprof.workloads.catalogue"
    )  # not a statement: to the import contracts, the process that draws must not reach jax
    workload: Workload = catalogue.load(CATALOGUE[name], name)
    return workload


def names() -> list[str]:
    return list(CATALOGUE)


def infos() -> list[WorkloadInfo]:
    from jaxprof.workloads.model import workload_info

    return [workload_info(load_built_in(name)) for name in names()]
