"""triad: the bandwidth of the device's memory, as STREAM measures it."""

from __future__ import annotations

from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Variant


def estimate(n):
    return Estimate(memory_bytes=4 * n * 4, flops=2 * n, traffic_bytes=3 * 4 * n)


@workload(
    title="b + 3 c",
    description=(
        "Two long arrays in, one out, two operations an element: nothing but memory traffic. Compiled, the time gives "
        "the bandwidth of the device's memory, which most other programs are bound by. Op by op, 3 c is written and "
        "read once more. Mind the size: what fits in a cache measures the cache, and is no ceiling of the roofline."
    ),
    inputs=["f32[n]", "f32[n]"],
    parameters={"n": Parameter(description="length of the arrays", minimum=1)},
    presets={"quick": {"n": 2**25}, "published": {"n": 2**27}},
    variants=[
        Variant(name="numpy", how="numpy", description="NumPy on the host, in two passes"),
        "jax",
        "jit",
    ],
    tolerance={"float32": 1e-6},
    matrix_products=False,
    estimate=estimate,
    shardings=("0", "0"),
)
def triad(b, c):
    return b + 3.0 * c
