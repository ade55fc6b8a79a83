"""sort: comparisons and data movement, where an accelerator is not at its best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def sort_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def sort(x: Any) -> Any:
        return np.sort(x)

    return sort


def sort_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp

    def sort(x: Any) -> Any:
        return jnp.sort(x)

    return sort


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    return (random.standard_normal(int(parameters["n"]), dtype="float32"),)


def estimate(parameters: Parameters) -> Estimate:
    n = float(parameters["n"])
    return Estimate(memory_bytes=3 * 4 * n, traffic_bytes=2 * 4 * n)


WORKLOAD = Workload(
    name="sort",
    title="sort(x)",
    description=(
        "One vector of float32 sorted. There is no arithmetic, so there are no FLOP/s; what counts is how often the "
        "data are moved. NumPy's sort uses the vector units of recent CPUs, and XLA's on a CPU does not: this is a "
        "workload that JAX may well lose."
    ),
    parameters=(Parameter(name="n", description="length of the vector", minimum=1),),
    presets={"quick": {"n": 200_000}, "published": {"n": 2**24}},
    variants=(
        Variant(name="numpy", how="numpy", build=sort_numpy, description="NumPy on the host"),
        Variant(name="jax", how="eager", build=sort_jax, description="op by op, device-resident"),
        Variant(name="jit", how="jit", build=sort_jax, description="one compiled program"),
    ),
    inputs=inputs,
    tolerance={"float32": 0.0},
    estimate=estimate,
)
