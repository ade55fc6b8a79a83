"""selu: five elementwise operations over one array, of which XLA makes one kernel."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, deephub


def selu_numpy(x, alpha=1.67, lmbda=1.05):
    return lmbda * np.where(x > 0, x, alpha * np.exp(x) - alpha)


def estimate(n):
    return Estimate(memory_bytes=4 * n * 6, flops=5 * n, traffic_bytes=2 * 4 * n)


_N = {"n": 1_000_000}


@workload(
    title="lmbda * where(x > 0, x, alpha * exp(x) - alpha)",
    description=(
        "The scaled exponential linear unit over a vector of float32. Op by op, each of the five operations reads and "
        "writes the whole array; compiled, one loop does all of them, so the gain is mostly memory traffic saved."
    ),
    inputs=["f32[n]"],
    parameters={"n": Parameter(description="length of the vector", minimum=1)},
    presets={"quick": _N, "published": _N},
    numpy=selu_numpy,
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=estimate,
    shardings=("0",),
    published=deephub(
        _N,
        ("numpy", "run", 7.6e-3, "Colab CPU"),
        ("jax", "first_run", 0.124, "Colab CPU"),
        ("jax", "run", 4.8e-3, "Colab CPU"),
        ("jax", "transfer_in", 109e-6, "Colab GPU"),
        ("jax", "first_run", 0.447, "Colab GPU"),
        ("jax", "run", 1.21e-3, "Colab GPU"),
        ("jit", "transfer_in", 104e-6, "Colab GPU"),
        ("jit", "first_run", 0.122, "Colab GPU"),
        ("jit", "run", 0.13e-3, "Colab GPU"),
    ),
)
def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)
