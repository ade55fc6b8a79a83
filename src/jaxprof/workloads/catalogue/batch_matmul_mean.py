"""batch-matmul-mean: the posterior mean of a matrix factorisation, where the fair NumPy twin matters most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Published, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def loop_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def mean_product(U: Any, Vt: Any) -> Any:
        products = [u @ vt for u, vt in zip(U, Vt, strict=True)]
        return np.mean(products, axis=0)

    return mean_product


def batched_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def mean_product(U: Any, Vt: Any) -> Any:
        return np.matmul(U, Vt).mean(0)

    return mean_product


def batched_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp

    def mean_product(U: Any, Vt: Any) -> Any:
        return jnp.matmul(U, Vt).mean(0)

    return mean_product


def einsum_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp

    def mean_product(U: Any, Vt: Any) -> Any:
        return jnp.einsum("brk,bkc->rc", U, Vt) / len(U)

    return mean_product


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    batch, rows, columns, k = (int(parameters[name]) for name in ("batch", "rows", "columns", "k"))
    U = random.standard_normal((batch, rows, k), dtype="float32")
    Vt = random.standard_normal((batch, k, columns), dtype="float32")
    return U, Vt


def estimate(parameters: Parameters) -> Estimate:
    batch, rows, columns, k = (float(parameters[name]) for name in ("batch", "rows", "columns", "k"))
    operands = 4 * batch * k * (rows + columns)
    products, result = 4 * batch * rows * columns, 4 * rows * columns
    return Estimate(
        memory_bytes=operands + 2 * products + result,  # the loop holds its products twice: as a list, and stacked
        flops=batch * rows * columns * (2 * k + 1),
        traffic_bytes=operands + result,
    )


_SOURCE: dict[str, Any] = {
    "source": '"Accelerating batch linear algebra with JAX"',
    "hardware": "i7 MacBook 2015",
}
_K = "k is not given by the source"
_B100: dict[str, Any] = {**_SOURCE, "parameters": {"batch": 100, "rows": 610, "columns": 9724}}
_B150: dict[str, Any] = {**_SOURCE, "parameters": {"batch": 150, "rows": 610, "columns": 9724}}

WORKLOAD = Workload(
    name="batch-matmul-mean",
    title="mean over b of U[b] · Vt[b]",
    description=(
        "U (b, 610, k) times Vt (b, k, 9724), averaged over the batch: the posterior mean of a probabilistic matrix "
        "factorisation. The source compares a Python loop with JAX; `numpy-batched` is the fair twin, and `jit-einsum` "
        "never makes the (b, 610, 9724) array at all. The source does not give k: 10 is our choice."
    ),
    parameters=(
        Parameter(name="batch", description="number of products that are averaged", minimum=1),
        Parameter(name="rows", description="rows of each U (610 in the source)", minimum=1),
        Parameter(name="columns", description="columns of each Vt (9724 in the source)", minimum=1),
        Parameter(name="k", description="inner dimension; not given by the source", minimum=1),
    ),
    presets={
        "quick": {"batch": 5, "rows": 610, "columns": 972, "k": 10},
        "published": {"batch": 100, "rows": 610, "columns": 9724, "k": 10},
        "published-150": {"batch": 150, "rows": 610, "columns": 9724, "k": 10},
    },
    variants=(
        Variant(
            name="numpy-loop",
            how="numpy",
            build=loop_numpy,
            description="NumPy, one product after the other, then the mean: the source's own comparison",
        ),
        Variant(
            name="numpy-batched",
            how="numpy",
            build=batched_numpy,
            description="NumPy, one batched product, then the mean: the fair twin",
        ),
        Variant(name="jax", how="eager", build=batched_jax, description="op by op, device-resident"),
        Variant(name="jit", how="jit", build=batched_jax, description="one compiled program"),
        Variant(
            name="jit-einsum",
            how="jit",
            build=einsum_jax,
            description="compiled, one contraction over b and k: no (b, rows, columns) array",
        ),
        Variant(
            name="jit-highest",
            how="jit",
            build=batched_jax,
            precision="highest",
            description="compiled, with full float32 products (no TF32, no bfloat16 passes)",
        ),
    ),
    baseline="numpy-batched",
    inputs=inputs,
    estimate=estimate,
    has_dots=True,
    published=(
        Published(variant="numpy-loop", phase="run", seconds=10.0, caveat=f"about 10 s; {_K}", **_B100),
        Published(variant="jax", phase="run", seconds=2.2, caveat=_K, **_B100),
        Published(variant="numpy-loop", phase="run", seconds=50.0, caveat=_K, **_B150),
        Published(variant="jax", phase="run", seconds=3.0, caveat=_K, **_B150),
    ),
)
