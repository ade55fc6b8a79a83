"""triad: the bandwidth of the device's memory, as STREAM measures it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def triad_numpy(parameters: Parameters) -> Callable[..., Any]:
    def triad(b: Any, c: Any) -> Any:
        return b + 3.0 * c

    return triad


def triad_jax(parameters: Parameters) -> Callable[..., Any]:
    def triad(b: Any, c: Any) -> Any:
        return b + 3.0 * c

    return triad


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    n = int(parameters["n"])
    return random.standard_normal(n, dtype="float32"), random.standard_normal(n, dtype="float32")


def estimate(parameters: Parameters) -> Estimate:
    n = float(parameters["n"])
    return Estimate(memory_bytes=4 * n * 4, flops=2 * n, traffic_bytes=3 * 4 * n)


WORKLOAD = Workload(
    name="triad",
    title="b + 3 c",
    description=(
        "Two long arrays in, one out, two operations an element: nothing but memory traffic. Compiled, the time gives "
        "the bandwidth of the device's memory, which most other programs are bound by. Op by op, 3 c is written and "
        "read once more. Mind the size: what fits in a cache measures the cache."
    ),
    parameters=(Parameter(name="n", description="length of the arrays", minimum=1),),
    presets={"quick": {"n": 4_000_000}, "published": {"n": 2**27}},
    variants=(
        Variant(name="numpy", how="numpy", build=triad_numpy, description="NumPy on the host, in two passes"),
        Variant(name="jax", how="eager", build=triad_jax, description="op by op, in two passes"),
        Variant(name="jit", how="jit", build=triad_jax, description="one compiled program, in one pass"),
    ),
    inputs=inputs,
    tolerance={"float32": 1e-6},
    estimate=estimate,
)
