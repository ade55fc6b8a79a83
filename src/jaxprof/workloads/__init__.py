"""The catalogue: what can be run. No jax here; the declarations import it inside their functions.

Naming the workloads imports nothing: the first frame of the app, and shell completion, want only that.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from jaxprof.errors import unknown_name

if TYPE_CHECKING:
    from jaxprof.workloads.model import Workload, WorkloadCard

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
"""Module names under `catalogue`, in the order in which they are listed; a workload's name has `-` for `_`."""


@cache
def built_in(name: str) -> Workload:
    """The built-in workload of that name. Raises UsageError naming the near ones."""
    module = name.replace("-", "_")
    if module not in CATALOGUE or "_" in name:
        raise unknown_name("workload", name, names())
    workload: Workload = import_module(f"jaxprof.workloads.catalogue.{module}").WORKLOAD
    return workload


def names() -> list[str]:
    """The names of the built-in workloads, in their order."""
    return [module.replace("_", "-") for module in CATALOGUE]


def cards(*, sources: bool = True) -> list[WorkloadCard]:
    """All built-in workloads as data."""
    from jaxprof.workloads.model import card

    return [card(built_in(name), sources=sources) for name in names()]
