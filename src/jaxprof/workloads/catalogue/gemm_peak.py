"""gemm-peak: how many FLOP/s the device's matrix units give, by precision."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Variant


def product_numpy(x, y):
    return np.matmul(x, y)


def inputs(random, n):
    """Return normal float32 numbers cut to bfloat16's 8 bits, so that the products are exact in every precision."""
    x = random.standard_normal((2, n, n), dtype="float32")
    x.view(np.uint32)[...] &= 0xFFFF0000
    return x[0], x[1]


def bfloat16(inputs):
    import ml_dtypes

    return tuple(array.astype(ml_dtypes.bfloat16) for array in inputs)


def estimate(n):
    return Estimate(memory_bytes=3 * 4 * n**2, flops=2 * n**3, traffic_bytes=3 * 4 * n**2)


@workload(
    title="x · y, large and square",
    description=(
        "One large square product, so that arithmetic is all that counts: the figure to hold against the device's data "
        "sheet. `jit` uses the device's default precision for float32 (TF32 on recent NVIDIA GPUs, bfloat16 passes on "
        "TPUs), `jit-highest` full float32, `jit-bfloat16` narrow inputs with sums in float32. The inputs are numbers "
        "that bfloat16 holds exactly, so all of them must give the same result."
    ),
    inputs=inputs,
    parameters={"n": Parameter(description="rows and columns of both matrices", minimum=1)},
    presets={"quick": {"n": 1024}, "published": {"n": 8192}},
    numpy=product_numpy,
    variants=[
        "jit",
        "jit-highest",
        Variant(
            name="jit-bfloat16",
            how="jit",
            adapt=bfloat16,
            description="bfloat16 inputs, float32 sums; a device without bfloat16 units converts first",
        ),
    ],
    tolerance={"float32": 1e-4, "tf32": 1e-3, "bfloat16": 1e-3},
    estimate=estimate,
)
def product(x, y):
    return jnp.matmul(x, y, preferred_element_type=jnp.float32)
