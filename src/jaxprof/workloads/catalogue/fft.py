"""fft: a batch of Fourier transforms, which the device's FFT library does."""

from __future__ import annotations

from math import log2

from jaxprof.workloads.catalogue import jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter


def fft_numpy(x):
    return np.fft.fft(x).astype(np.complex64, copy=False)  # NumPy before 2.0 always answers in complex128


def estimate(batch, n):
    return Estimate(memory_bytes=4 * 8 * batch * n, flops=5 * batch * n * log2(n), traffic_bytes=2 * 8 * batch * n)


@workload(
    title="fft(x) along the rows",
    description=(
        "A batch of one-dimensional complex64 Fourier transforms. XLA does not generate the code, it calls the "
        "device's library (cuFFT, or its own on a CPU), so nothing is fused into it. FLOPs are the customary 5 n log2 "
        "n, whatever the library does; lengths with large prime factors are much slower than powers of two."
    ),
    inputs=["c64[batch,n]"],
    parameters={
        "batch": Parameter(description="how many transforms", minimum=1),
        "n": Parameter(description="length of each", minimum=1),
    },
    presets={"quick": {"batch": 64, "n": 4096}, "published": {"batch": 1024, "n": 65_536}},
    numpy=fft_numpy,
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=estimate,
    shardings=("0",),
)
def fft(x):
    return jnp.fft.fft(x)
