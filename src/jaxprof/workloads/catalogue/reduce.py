"""reduce: one sum over many numbers, in the direction that is hard or the one that is easy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


_AXES = {"all": None, "rows": 0, "columns": 1}


def sum_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    axis = _AXES[str(parameters["over"])]

    def total(x: Any) -> Any:
        return np.sum(x, axis=axis)

    return total


def sum_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp

    axis = _AXES[str(parameters["over"])]

    def total(x: Any) -> Any:
        return jnp.sum(x, axis=axis)

    return total


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    """Positive numbers, so that the sum is well conditioned."""
    return (random.random((int(parameters["rows"]), int(parameters["columns"])), dtype="float32"),)


def sum_float64(parameters: Parameters, inputs: tuple[Any, ...]) -> Any:
    return inputs[0].sum(axis=_AXES[str(parameters["over"])], dtype="float64")


def estimate(parameters: Parameters) -> Estimate:
    rows, columns = float(parameters["rows"]), float(parameters["columns"])
    result = {"all": 1.0, "rows": columns, "columns": rows}[str(parameters["over"])]
    traffic = 4 * (rows * columns + result)
    return Estimate(memory_bytes=traffic, flops=rows * columns, traffic_bytes=traffic)


WORKLOAD = Workload(
    name="reduce",
    title="sum(x, axis)",
    description=(
        "The sum of a matrix of float32: of everything, over its rows, or over its columns. Every number is read once, "
        "so the ceiling is memory bandwidth; how near a device comes depends on the axis, because threads that share a "
        "sum must talk to each other. The result is held against the same sum in float64."
    ),
    parameters=(
        Parameter(name="rows", description="rows of x", minimum=1),
        Parameter(name="columns", description="columns of x, contiguous in memory", minimum=1),
        Parameter(name="over", description="what is summed over", kind="choice", choices=("all", "rows", "columns")),
    ),
    presets={
        "quick": {"rows": 2000, "columns": 2000, "over": "all"},
        "published": {"rows": 16_384, "columns": 16_384, "over": "all"},
    },
    variants=(
        Variant(name="numpy", how="numpy", build=sum_numpy, description="NumPy on the host"),
        Variant(name="jax", how="eager", build=sum_jax, description="op by op, device-resident"),
        Variant(name="jit", how="jit", build=sum_jax, description="one compiled program"),
    ),
    inputs=inputs,
    expected=sum_float64,
    against="the sum in float64",
    tolerance={"float32": 1e-4},
    estimate=estimate,
)
