"""gemm-peak: how many FLOP/s the device's matrix units give, by precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def product_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def product(x: Any, y: Any) -> Any:
        return np.matmul(x, y)

    return product


def product_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp

    def product(x: Any, y: Any) -> Any:
        return jnp.matmul(x, y, preferred_element_type=jnp.float32)

    return product


def bfloat16(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    import ml_dtypes

    return tuple(array.astype(ml_dtypes.bfloat16) for array in inputs)


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    """Normal float32 numbers cut to bfloat16's 8 bits: the products are then exact in every precision."""
    import numpy as np

    n = int(parameters["n"])
    x = random.standard_normal((2, n, n), dtype="float32")
    x.view(np.uint32)[...] &= 0xFFFF0000
    return x[0], x[1]


def estimate(parameters: Parameters) -> Estimate:
    n = float(parameters["n"])
    return Estimate(memory_bytes=3 * 4 * n**2, flops=2 * n**3, traffic_bytes=3 * 4 * n**2)


WORKLOAD = Workload(
    name="gemm-peak",
    title="x · y, large and square",
    description=(
        "One large square product, so that arithmetic is all that counts: the figure to hold against the device's data "
        "sheet. `jit` uses the device's default precision for float32 (TF32 on recent NVIDIA GPUs, bfloat16 passes on "
        "TPUs), `jit-highest` full float32, `jit-bfloat16` narrow inputs with sums in float32. The inputs are numbers "
        "that bfloat16 holds exactly, so all of them must give the same result."
    ),
    parameters=(Parameter(name="n", description="rows and columns of both matrices", minimum=1),),
    presets={"quick": {"n": 1024}, "published": {"n": 8192}},
    variants=(
        Variant(name="numpy", how="numpy", build=product_numpy, description="NumPy on the host, float32"),
        Variant(name="jit", how="jit", build=product_jax, description="float32, the device's default precision"),
        Variant(
            name="jit-highest",
            how="jit",
            build=product_jax,
            precision="highest",
            description="full float32 products (no TF32, no bfloat16 passes)",
        ),
        Variant(
            name="jit-bfloat16",
            how="jit",
            build=product_jax,
            adapt=bfloat16,
            description="bfloat16 inputs, float32 sums; a device without bfloat16 units converts first",
        ),
    ),
    inputs=inputs,
    tolerance={"float32": 1e-4, "tf32": 1e-3, "bfloat16": 1e-3},
    estimate=estimate,
    has_dots=True,
)
