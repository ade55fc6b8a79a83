"""matmul: the product that the JAX quickstart opens with, from NumPy, resident, and compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Published, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def gram_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def gram(x: Any) -> Any:
        return np.dot(x, x.T)

    return gram


def gram_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp

    def gram(x: Any) -> Any:
        return jnp.dot(x, x.T)

    return gram


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    n = int(parameters["n"])
    return (random.standard_normal((n, n), dtype="float32"),)


def estimate(parameters: Parameters) -> Estimate:
    n = float(parameters["n"])
    return Estimate(memory_bytes=3 * 4 * n**2, flops=2 * n**3, traffic_bytes=2 * 4 * n**2)


_QUICKSTART: dict[str, Any] = {
    "source": "JAX quickstart",
    "hardware": "GPU, not named",
    "parameters": {"n": 3000},
    "statistic": "mean ± sd of 7 runs",
}
_DEEPHUB: dict[str, Any] = {"source": 'deephub "JAX" (F. Chiusano)', "parameters": {"n": 5000}}
_COLAB: dict[str, Any] = {"source": "Colab tests A-E", "parameters": {"n": 10_000}}
_COLAB_CPU = "Colab, 2.2 GHz Xeon"
_COLAB_GPU = "Colab, NVIDIA T4"

_UNBLOCKED = "device_put of an array that was already there, and not waited for: no transfer was timed"
_FIRST_CALL = "the first call, given as compile time: tracing, compiling and one run are inside"

WORKLOAD = Workload(
    name="matmul",
    title="dot(x, x.T)",
    description=(
        "A square matrix of normal float32 numbers times its own transpose. NumPy hands it to BLAS and JAX to the "
        "device's own library, so on a CPU there is little to gain; on an accelerator it is the best case. Compare "
        "`jax-from-numpy` with `jax`: the difference is the transfer of x, paid at every call."
    ),
    parameters=(Parameter(name="n", description="rows and columns of x", minimum=1),),
    presets={
        "quick": {"n": 1000},
        "published": {"n": 3000},
        "published-5000": {"n": 5000},
        "published-10000": {"n": 10_000},
    },
    variants=(
        Variant(name="numpy", how="numpy", build=gram_numpy, description="NumPy on the host"),
        Variant(
            name="jax-from-numpy",
            how="eager",
            build=gram_jax,
            inputs="host",
            description="op by op, a NumPy array given at each call: the transfer is inside",
        ),
        Variant(name="jax", how="eager", build=gram_jax, description="op by op, device-resident"),
        Variant(
            name="device-put",
            how="eager",
            build=gram_jax,
            description="op by op, after one explicit device_put of the NumPy array; resident like `jax`",
        ),
        Variant(name="jit", how="jit", build=gram_jax, description="one compiled program"),
        Variant(
            name="jit-highest",
            how="jit",
            build=gram_jax,
            precision="highest",
            description="compiled, with full float32 products (no TF32, no bfloat16 passes)",
        ),
    ),
    inputs=inputs,
    estimate=estimate,
    has_dots=True,
    published=(
        Published(variant="jax", phase="run", seconds=27.9e-3, **_QUICKSTART),
        Published(variant="jax-from-numpy", phase="run", seconds=50.7e-3, **_QUICKSTART),
        Published(variant="device-put", phase="run", seconds=27.3e-3, **_QUICKSTART),
        Published(variant="numpy", phase="run", seconds=1.61, hardware="Colab CPU", **_DEEPHUB),
        Published(variant="jax", phase="run", seconds=3.49, hardware="Colab CPU", **_DEEPHUB),
        Published(
            variant="jax",
            phase="transfer_in",
            seconds=0.155e-3,
            hardware="Colab GPU",
            caveat=_UNBLOCKED,
            **_DEEPHUB,
        ),
        Published(variant="jax", phase="first_run", seconds=2.16, hardware="Colab GPU", caveat=_FIRST_CALL, **_DEEPHUB),
        Published(variant="jax", phase="run", seconds=68.9e-3, hardware="Colab GPU", **_DEEPHUB),
        Published(
            variant="jax",
            phase="transfer_in",
            seconds=0.164e-3,
            hardware="Colab TPU",
            caveat=_UNBLOCKED,
            **_DEEPHUB,
        ),
        Published(
            variant="jax", phase="first_run", seconds=0.837, hardware="Colab TPU", caveat=_FIRST_CALL, **_DEEPHUB
        ),
        Published(variant="jax", phase="run", seconds=16.5e-3, hardware="Colab TPU", **_DEEPHUB),
        Published(
            variant="numpy",
            phase="run",
            seconds=None,
            hardware=_COLAB_CPU,
            text="test A: what the others are compared with",
            **_COLAB,
        ),
        Published(
            variant="jax",
            phase="run",
            seconds=None,
            hardware=_COLAB_CPU,
            text="tests B and C: about 2× the time of NumPy",
            **_COLAB,
        ),
        Published(
            variant="jax-from-numpy",
            phase="run",
            seconds=None,
            hardware=_COLAB_GPU,
            text="test D: slightly over test E",
            **_COLAB,
        ),
        Published(
            variant="jax",
            phase="run",
            seconds=None,
            hardware=_COLAB_GPU,
            text="test E: 28× faster than NumPy",
            caveat="NumPy on the Xeon, JAX on the T4",
            **_COLAB,
        ),
    ),
)
