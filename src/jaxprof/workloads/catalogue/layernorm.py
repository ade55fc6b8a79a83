"""layernorm: two reductions and their elementwise work, the textbook case of fusion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def layernorm_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def layernorm(x: Any, scale: Any, bias: Any) -> Any:
        mean = x.mean(axis=-1, keepdims=True)
        variance = x.var(axis=-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + np.float32(1e-6)) * scale + bias

    return layernorm


def layernorm_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax

    def layernorm(x: Any, scale: Any, bias: Any) -> Any:
        mean = x.mean(axis=-1, keepdims=True)
        variance = x.var(axis=-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale + bias

    return layernorm


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    rows, features = int(parameters["rows"]), int(parameters["features"])
    return (
        random.standard_normal((rows, features), dtype="float32"),
        random.standard_normal(features, dtype="float32"),
        random.standard_normal(features, dtype="float32"),
    )


def estimate(parameters: Parameters) -> Estimate:
    rows, features = float(parameters["rows"]), float(parameters["features"])
    array = 4 * rows * features
    return Estimate(memory_bytes=4 * array, flops=8 * rows * features, traffic_bytes=2 * array + 2 * 4 * features)


WORKLOAD = Workload(
    name="layernorm",
    title="(x - mean) / sqrt(var + ε) · scale + bias",
    description=(
        "Layer normalisation of every row of a matrix. Op by op the matrix goes through memory some ten times; a good "
        "compiler makes one or two kernels of it, and the best time is that of reading x once and writing the result "
        "once. Look at the kernels: where the reductions end is where fusion stops."
    ),
    parameters=(
        Parameter(name="rows", description="how many rows are normalised", minimum=1),
        Parameter(name="features", description="length of a row", minimum=1),
    ),
    presets={"quick": {"rows": 2048, "features": 512}, "published": {"rows": 16_384, "features": 4096}},
    variants=(
        Variant(name="numpy", how="numpy", build=layernorm_numpy, description="NumPy on the host"),
        Variant(name="jax", how="eager", build=layernorm_jax, description="op by op, device-resident"),
        Variant(name="jit", how="jit", build=layernorm_jax, description="one compiled program"),
    ),
    inputs=inputs,
    tolerance={"float32": 1e-5},
    estimate=estimate,
)
