"""matmul: the product that the JAX quickstart opens with, from NumPy, resident, and compiled."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Variant, deephub


def gram_numpy(x):
    return np.dot(x, x.T)


def estimate(n):
    return Estimate(memory_bytes=3 * 4 * n**2, flops=2 * n**3, traffic_bytes=2 * 4 * n**2)


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
    published=deephub(
        {"n": 5000},
        ("numpy", "run", 1.61, "Colab CPU"),
        ("jax", "run", 3.49, "Colab CPU"),
        ("jax", "transfer_in", 0.155e-3, "Colab GPU"),
        ("jax", "first_run", 2.16, "Colab GPU"),
        ("jax", "run", 68.9e-3, "Colab GPU"),
        ("jax", "transfer_in", 0.164e-3, "Colab TPU"),
        ("jax", "first_run", 0.837, "Colab TPU"),
        ("jax", "run", 16.5e-3, "Colab TPU"),
        first="the first call, given as compile time: tracing, compiling and one run are inside",
    ),
)
def gram(x):
    return jnp.dot(x, x.T)
