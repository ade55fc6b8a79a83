"""sort: comparisons and data movement, where an accelerator is not at its best."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter


def sort_numpy(x):
    return np.sort(x)


def estimate(n):
    return Estimate(memory_bytes=3 * 4 * n, traffic_bytes=2 * 4 * n)


@workload(
    title="sort(x)",
    description=(
        "One vector of float32 sorted. There is no arithmetic, so there are no FLOP/s; what counts is how often the "
        "data are moved. NumPy's sort uses the vector units of recent CPUs, and XLA's on a CPU does not: this is a "
        "workload that JAX may well lose."
    ),
    inputs=["f32[n]"],
    parameters={"n": Parameter(description="length of the vector", minimum=1)},
    presets={"quick": {"n": 200_000}, "published": {"n": 2**24}},
    numpy=sort_numpy,
    tolerance={"float32": 0.0},
    matrix_products=False,
    estimate=estimate,
)
def sort(x):
    return jnp.sort(x)
