"""The built-in workloads by name. Neither this nor reading a declaration imports jax.

Listing the names imports nothing: the first frame of the app, and shell completion, need no more.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from jaxprof.errors import unknown_name

if TYPE_CHECKING:
    from jaxprof.workloads.model import Workload, WorkloadInfo

CATALOGUE = (
    "matmul",
    "matmul_uniform",
    "selu",
    "batch_matmul_mean",
    "grad_logistic",
    "grad_nested",
    "hessian",
    "vjp_jvp",
    "vmap",
    "transfer",
    "triad",
    "gemm_peak",
    "reduce",
    "sort",
    "fft",
    "conv2d",
    "layernorm",
    "attention",
    "scan_rnn",
    "mlp_train_step",
)
"""Names of the modules under `catalogue`, in the order of the list. A workload's name has `-` for `_`."""


@cache
def built_in(name: str) -> Workload:
    """Return the built-in workload of that name. Raises UsageError with similar names."""
    module = name.replace("-", "_")
    if module not in CATALOGUE or "_" in name:
        raise unknown_name("workload", name, names())
    catalogue = import_module(
        "jaxprof.workloads.catalogue"
    )  # not a statement: to the import contracts, the process that draws must not reach jax
    workload: Workload = catalogue.load(module)
    return workload


def names() -> list[str]:
    """Return the names of the built-in workloads, in their order."""
    return [module.replace("_", "-") for module in CATALOGUE]


def infos() -> list[WorkloadInfo]:
    """Return all built-in workloads as data."""
    from jaxprof.workloads.model import workload_info

    return [workload_info(built_in(name)) for name in names()]
