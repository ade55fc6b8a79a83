"""reduce: one sum over many numbers, in the direction that is hard or the one that is easy."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Variant

_AXES = {"all": None, "rows": 0, "columns": 1}


def sum_numpy(over):
    axis = _AXES[over]

    def total(x):
        return np.sum(x, axis=axis)

    return total


def inputs(random, rows, columns):
    """Return positive numbers, so that the sum is well conditioned."""
    return random.random((rows, columns), dtype="float32")


def sum_float64(x, *, over):
    return x.sum(axis=_AXES[over], dtype="float64")


def estimate(rows, columns, over):
    traffic = 4 * (rows * columns + {"all": 1, "rows": columns, "columns": rows}[over])
    return Estimate(memory_bytes=traffic, flops=rows * columns, traffic_bytes=traffic)


@workload(
    title="sum(x, axis)",
    description=(
        "The sum of a matrix of float32: of everything, over its rows, or over its columns. Every number is read once, "
        "so the ceiling is memory bandwidth; how near a device comes depends on the axis, because threads that share a "
        "sum must talk to each other. The result is compared with the same sum in float64."
    ),
    factory=True,
    inputs=inputs,
    parameters={
        "rows": Parameter(description="rows of x", minimum=1),
        "columns": Parameter(description="columns of x, contiguous in memory", minimum=1),
        "over": Parameter(description="what is summed over", kind="choice", choices=("all", "rows", "columns")),
    },
    presets={
        "quick": {"rows": 2000, "columns": 2000, "over": "all"},
        "published": {"rows": 16_384, "columns": 16_384, "over": "all"},
    },
    variants=[
        Variant(name="numpy", how="numpy", function=sum_numpy, factory=True, description="NumPy on the host"),
        "jax",
        "jit",
    ],
    expected=sum_float64,
    against="the sum in float64",
    tolerance={"float32": 1e-4},
    matrix_products=False,
    estimate=estimate,
    shardings=("0",),
)
def sum_jax(over):
    axis = _AXES[over]

    def total(x):
        return jnp.sum(x, axis=axis)

    return total
