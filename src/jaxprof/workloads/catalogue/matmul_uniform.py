"""matmul-uniform: the same product over uniform numbers, which are all positive."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter


def square_numpy(x):
    return np.matmul(x, x)


def inputs(random, n):
    return random.random((n, n), dtype="float32")


def estimate(n):
    return Estimate(memory_bytes=2 * 4 * n**2, flops=2 * n**3, traffic_bytes=2 * 4 * n**2)


@workload(
    title="matmul(x, x), x uniform",
    description=(
        "A square matrix of uniform float32 numbers in [0, 1) times itself. The work is that of `matmul`; all terms "
        "are positive, so nothing cancels and the relative error of a lower matrix precision is at its smallest."
    ),
    inputs=inputs,
    parameters={"n": Parameter(description="rows and columns of x", minimum=1)},
    presets={"quick": {"n": 1000}, "published": {"n": 5000}},
    numpy=square_numpy,
    variants=["jax", "jit", "jit-highest"],
    estimate=estimate,
)
def square(x):
    return jnp.matmul(x, x)
