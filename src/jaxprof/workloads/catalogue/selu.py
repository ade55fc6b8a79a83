"""selu: five elementwise operations over one array, of which XLA makes one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Published, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def selu_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def selu(x: Any, alpha: float = 1.67, lmbda: float = 1.05) -> Any:
        return lmbda * np.where(x > 0, x, alpha * np.exp(x) - alpha)

    return selu


def selu_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp

    def selu(x: Any, alpha: float = 1.67, lmbda: float = 1.05) -> Any:
        return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

    return selu


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    return (random.standard_normal(int(parameters["n"]), dtype="float32"),)


def estimate(parameters: Parameters) -> Estimate:
    n = float(parameters["n"])
    return Estimate(memory_bytes=4 * n * 6, flops=5 * n, traffic_bytes=2 * 4 * n)


_N = {"n": 1_000_000}
_DEEPHUB: dict[str, Any] = {"source": 'deephub "JAX" (F. Chiusano)', "parameters": _N}
_QUICKSTART: dict[str, Any] = {
    "source": "JAX quickstart",
    "hardware": "GPU, not named",
    "parameters": _N,
    "statistic": "mean ± sd of 7 runs",
}
_FIRST_CALL = "the first call: tracing, compiling and one run are inside"

WORKLOAD = Workload(
    name="selu",
    title="lmbda * where(x > 0, x, alpha * exp(x) - alpha)",
    description=(
        "The scaled exponential linear unit over a vector of float32. Op by op, each of the five operations reads and "
        "writes the whole array; compiled, one loop does all of them, so the gain is mostly memory traffic saved."
    ),
    parameters=(Parameter(name="n", description="length of the vector", minimum=1),),
    presets={"quick": _N, "published": _N},
    variants=(
        Variant(name="numpy", how="numpy", build=selu_numpy, description="NumPy on the host"),
        Variant(name="jax", how="eager", build=selu_jax, description="jax.numpy op by op, device-resident"),
        Variant(name="jit", how="jit", build=selu_jax, description="one compiled program"),
    ),
    inputs=inputs,
    tolerance={"float32": 1e-5},
    estimate=estimate,
    published=(
        Published(variant="numpy", phase="run", seconds=7.6e-3, hardware="Colab CPU", **_DEEPHUB),
        Published(variant="jax", phase="run", seconds=4.8e-3, hardware="Colab CPU", **_DEEPHUB),
        Published(variant="jax", phase="run", seconds=1.21e-3, hardware="Colab GPU", **_DEEPHUB),
        Published(
            variant="jax", phase="first_run", seconds=0.447, hardware="Colab GPU", caveat=_FIRST_CALL, **_DEEPHUB
        ),
        Published(variant="jit", phase="run", seconds=0.13e-3, hardware="Colab GPU", **_DEEPHUB),
        Published(
            variant="jit", phase="first_run", seconds=0.122, hardware="Colab GPU", caveat=_FIRST_CALL, **_DEEPHUB
        ),
        Published(variant="jax", phase="run", seconds=861e-6, **_QUICKSTART),
        Published(variant="jit", phase="run", seconds=142e-6, **_QUICKSTART),
    ),
)
