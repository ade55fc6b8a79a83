"""matmul: the product that the JAX quickstart opens with, from NumPy, resident, and compiled."""

from __future__ import annotations

from typing import Any

from jaxprof.workloads.catalogue import jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Published, Variant


def gram_numpy(x):
    return np.dot(x, x.T)


def estimate(n):
    return Estimate(memory_bytes=3 * 4 * n**2, flops=2 * n**3, traffic_bytes=2 * 4 * n**2)


_DEEPHUB: dict[str, Any] = {"source": 'deephub "JAX" (F. Chiusano)', "parameters": {"n": 5000}}
_BEST_OF_5: dict[str, Any] = {**_DEEPHUB, "kind": "best", "runs": 5}
_ONE_COPY: dict[str, Any] = {**_DEEPHUB, "kind": "one call"}
_FIRST: dict[str, Any] = {**_DEEPHUB, "phase": "first_run", "kind": "one call"}
_UNBLOCKED = "device_put of an array that was already there, and not waited for: no transfer was timed"
_FIRST_CALL = "the first call, given as compile time: tracing, compiling and one run are inside"


@workload(
    title="dot(x, x.T)",
    description=(
        "A square matrix of normal float32 numbers times its own transpose. NumPy hands it to BLAS and JAX to the "
        "device's own library, so on a CPU there is little to gain; on an accelerator it is the best case. Compare "
        "`jax-from-numpy` with `jax`: the difference is the transfer of x, paid at every call."
    ),
    inputs=["f32[n,n]"],
    parameters={"n": Parameter(description="rows and columns of x", minimum=1)},
    presets={
        "quick": {"n": 1000},
        "published": {"n": 3000},
        "published-5000": {"n": 5000},
    },
    numpy=gram_numpy,
    variants=[
        Variant(
            name="jax-from-numpy",
            how="eager",
            inputs="host",
            description="op by op, a NumPy array given at each call: the transfer is inside",
        ),
        "jax",
        Variant(
            name="device-put",
            how="eager",
            description="op by op, after one explicit device_put of the NumPy array; resident like `jax`",
        ),
        "jit",
        "jit-highest",
    ],
    estimate=estimate,
    shardings=("0",),
    published=(
        Published(variant="numpy", phase="run", seconds=1.61, hardware="Colab CPU", **_BEST_OF_5),
        Published(variant="jax", phase="run", seconds=3.49, hardware="Colab CPU", **_BEST_OF_5),
        Published(
            variant="jax",
            phase="transfer_in",
            seconds=0.155e-3,
            hardware="Colab GPU",
            caveat=_UNBLOCKED,
            **_ONE_COPY,
        ),
        Published(variant="jax", seconds=2.16, hardware="Colab GPU", caveat=_FIRST_CALL, **_FIRST),
        Published(variant="jax", phase="run", seconds=68.9e-3, hardware="Colab GPU", **_BEST_OF_5),
        Published(
            variant="jax",
            phase="transfer_in",
            seconds=0.164e-3,
            hardware="Colab TPU",
            caveat=_UNBLOCKED,
            **_ONE_COPY,
        ),
        Published(variant="jax", seconds=0.837, hardware="Colab TPU", caveat=_FIRST_CALL, **_FIRST),
        Published(variant="jax", phase="run", seconds=16.5e-3, hardware="Colab TPU", **_BEST_OF_5),
    ),
)
def gram(x):
    return jnp.dot(x, x.T)
