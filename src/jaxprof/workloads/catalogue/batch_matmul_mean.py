"""batch-matmul-mean: the posterior mean of a matrix factorisation, where the fair NumPy twin matters most."""

from __future__ import annotations

from typing import Any

from jaxprof.workloads.catalogue import jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Published, Variant


def loop_numpy(U, Vt):
    products = [u @ vt for u, vt in zip(U, Vt, strict=True)]
    return np.mean(products, axis=0)


def batched_numpy(U, Vt):
    return np.matmul(U, Vt).mean(0)


def mean_einsum(U, Vt):
    return jnp.einsum("brk,bkc->rc", U, Vt) / len(U)


def estimate(batch, rows, columns, k):
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


@workload(
    title="mean over b of U[b] · Vt[b]",
    description=(
        "U (b, 610, k) times Vt (b, k, 9724), averaged over the batch: the posterior mean of a probabilistic matrix "
        "factorisation. The source compares a Python loop with JAX; `numpy-batched` is the fair twin, and `jit-einsum` "
        "never makes the (b, 610, 9724) array at all. The source does not give k: 10 is our choice."
    ),
    inputs=["f32[batch,rows,k]", "f32[batch,k,columns]"],
    parameters={
        "batch": Parameter(description="number of products that are averaged", minimum=1),
        "rows": Parameter(description="rows of each U (610 in the source)", minimum=1),
        "columns": Parameter(description="columns of each Vt (9724 in the source)", minimum=1),
        "k": Parameter(description="inner dimension; not given by the source", minimum=1),
    },
    presets={
        "quick": {"batch": 5, "rows": 610, "columns": 972, "k": 10},
        "published": {"batch": 100, "rows": 610, "columns": 9724, "k": 10},
        "published-150": {"batch": 150, "rows": 610, "columns": 9724, "k": 10},
    },
    variants=[
        Variant(
            name="numpy-loop",
            how="numpy",
            function=loop_numpy,
            description="NumPy, one product after the other, then the mean: the source's own comparison",
        ),
        Variant(
            name="numpy-batched",
            how="numpy",
            function=batched_numpy,
            description="NumPy, one batched product, then the mean: the fair twin",
        ),
        "jax",
        "jit",
        Variant(
            name="jit-einsum",
            how="jit",
            function=mean_einsum,
            description="compiled, one contraction over b and k: no (b, rows, columns) array",
        ),
        "jit-highest",
    ],
    baseline="numpy-batched",
    estimate=estimate,
    shardings=("0", "0"),
    published=(
        Published(variant="numpy-loop", phase="run", seconds=10.0, caveat=f"about 10 s; {_K}", **_B100),
        Published(variant="jax", phase="run", seconds=2.2, caveat=_K, **_B100),
        Published(variant="numpy-loop", phase="run", seconds=50.0, caveat=_K, **_B150),
        Published(variant="jax", phase="run", seconds=3.0, caveat=_K, **_B150),
    ),
)
def mean_product(U, Vt):
    return jnp.matmul(U, Vt).mean(0)
