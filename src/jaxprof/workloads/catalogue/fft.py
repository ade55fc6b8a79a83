"""fft: a batch of Fourier transforms, which the device's FFT library does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def fft_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def fft(x: Any) -> Any:
        return np.fft.fft(x).astype(np.complex64, copy=False)  # NumPy before 2.0 always answers in complex128

    return fft


def fft_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp

    def fft(x: Any) -> Any:
        return jnp.fft.fft(x)

    return fft


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    import numpy as np

    parts = random.standard_normal((int(parameters["batch"]), int(parameters["n"]), 2), dtype="float32")
    return (parts.view(np.complex64)[..., 0],)


def estimate(parameters: Parameters) -> Estimate:
    from math import log2

    batch, n = float(parameters["batch"]), float(parameters["n"])
    return Estimate(memory_bytes=4 * 8 * batch * n, flops=5 * batch * n * log2(n), traffic_bytes=2 * 8 * batch * n)


WORKLOAD = Workload(
    name="fft",
    title="fft(x) along the rows",
    description=(
        "A batch of one-dimensional complex64 Fourier transforms. XLA does not generate the code, it calls the "
        "device's library (cuFFT, or its own on a CPU), so nothing is fused into it. FLOPs are the customary 5 n log2 "
        "n, whatever the library does; lengths with large prime factors are much slower than powers of two."
    ),
    parameters=(
        Parameter(name="batch", description="how many transforms", minimum=1),
        Parameter(name="n", description="length of each", minimum=1),
    ),
    presets={"quick": {"batch": 64, "n": 4096}, "published": {"batch": 1024, "n": 65_536}},
    variants=(
        Variant(name="numpy", how="numpy", build=fft_numpy, description="NumPy on the host"),
        Variant(name="jax", how="eager", build=fft_jax, description="op by op, device-resident"),
        Variant(name="jit", how="jit", build=fft_jax, description="one compiled program"),
    ),
    inputs=inputs,
    tolerance={"float32": 1e-5},
    estimate=estimate,
)
