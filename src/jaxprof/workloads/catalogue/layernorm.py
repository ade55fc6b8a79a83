"""layernorm: two reductions and their elementwise work, the textbook case of fusion."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jax, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter


def layernorm_numpy(x, scale, bias):
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(1e-6)) * scale + bias


def estimate(rows, features):
    array = 4 * rows * features
    return Estimate(memory_bytes=4 * array, flops=8 * rows * features, traffic_bytes=2 * array + 2 * 4 * features)


@workload(
    title="(x - mean) / sqrt(var + ε) · scale + bias",
    description=(
        "Layer normalisation of every row of a matrix. Op by op the matrix goes through memory some ten times; a good "
        "compiler makes one or two kernels of it, and the best time is that of reading x once and writing the result "
        "once. Look at the kernels: where the reductions end is where fusion stops."
    ),
    inputs=["f32[rows,features]", "f32[features]", "f32[features]"],
    parameters={
        "rows": Parameter(description="how many rows are normalised", minimum=1),
        "features": Parameter(description="length of a row", minimum=1),
    },
    presets={"quick": {"rows": 2048, "features": 512}, "published": {"rows": 16_384, "features": 4096}},
    numpy=layernorm_numpy,
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=estimate,
    shardings=("0", None, None),
)
def layernorm(x, scale, bias):
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale + bias
