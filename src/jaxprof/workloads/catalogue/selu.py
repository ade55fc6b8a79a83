"""selu: five elementwise operations over one array, of which XLA makes one kernel."""

from __future__ import annotations

from typing import Any

from jaxprof.workloads.catalogue import jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Published, Variant


def selu_numpy(x, alpha=1.67, lmbda=1.05):
    return lmbda * np.where(x > 0, x, alpha * np.exp(x) - alpha)


def estimate(n):
    return Estimate(memory_bytes=4 * n * 6, flops=5 * n, traffic_bytes=2 * 4 * n)


_N = {"n": 1_000_000}
_DEEPHUB: dict[str, Any] = {"source": 'deephub "JAX" (F. Chiusano)', "parameters": _N}
_BEST_OF_5: dict[str, Any] = {**_DEEPHUB, "kind": "best", "runs": 5}
_ONE_COPY: dict[str, Any] = {**_DEEPHUB, "kind": "one call"}
_FIRST: dict[str, Any] = {**_DEEPHUB, "phase": "first_run", "kind": "one call"}
_UNBLOCKED = "device_put of an array that was already there, and not waited for: no transfer was timed"
_FIRST_CALL = "the first call: tracing, compiling and one run are inside"


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
    variants=[Variant(name="jax", how="eager", description="jax.numpy op by op, device-resident"), "jit"],
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=estimate,
    shardings=("0",),
    published=(
        Published(variant="numpy", phase="run", seconds=7.6e-3, hardware="Colab CPU", **_BEST_OF_5),
        Published(variant="jax", seconds=0.124, hardware="Colab CPU", caveat=_FIRST_CALL, **_FIRST),
        Published(variant="jax", phase="run", seconds=4.8e-3, hardware="Colab CPU", **_BEST_OF_5),
        Published(
            variant="jax",
            phase="transfer_in",
            seconds=109e-6,
            hardware="Colab GPU",
            caveat=_UNBLOCKED,
            **_ONE_COPY,
        ),
        Published(variant="jax", seconds=0.447, hardware="Colab GPU", caveat=_FIRST_CALL, **_FIRST),
        Published(variant="jax", phase="run", seconds=1.21e-3, hardware="Colab GPU", **_BEST_OF_5),
        Published(
            variant="jit",
            phase="transfer_in",
            seconds=104e-6,
            hardware="Colab GPU",
            caveat=_UNBLOCKED,
            **_ONE_COPY,
        ),
        Published(variant="jit", seconds=0.122, hardware="Colab GPU", caveat=_FIRST_CALL, **_FIRST),
        Published(variant="jit", phase="run", seconds=0.13e-3, hardware="Colab GPU", **_BEST_OF_5),
    ),
)
def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)
