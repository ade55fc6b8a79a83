"""matmul-uniform: the same product over uniform numbers, as another article measures it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Published, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def square_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def square(x: Any) -> Any:
        return np.matmul(x, x)

    return square


def square_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp

    def square(x: Any) -> Any:
        return jnp.matmul(x, x)

    return square


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    n = int(parameters["n"])
    return (random.random((n, n), dtype="float32"),)


def estimate(parameters: Parameters) -> Estimate:
    n = float(parameters["n"])
    return Estimate(memory_bytes=2 * 4 * n**2, flops=2 * n**3, traffic_bytes=2 * 4 * n**2)


_SOURCE: dict[str, Any] = {"source": "an article, not named", "hardware": "not said", "parameters": {"n": 5000}}

WORKLOAD = Workload(
    name="matmul-uniform",
    title="matmul(x, x), x uniform",
    description=(
        "A square matrix of uniform float32 numbers in [0, 1) times itself. The work is that of `matmul`; all terms "
        "are positive, so nothing cancels and the relative error of a lower matrix precision is at its smallest."
    ),
    parameters=(Parameter(name="n", description="rows and columns of x", minimum=1),),
    presets={"quick": {"n": 1000}, "published": {"n": 5000}},
    variants=(
        Variant(name="numpy", how="numpy", build=square_numpy, description="NumPy on the host"),
        Variant(name="jax", how="eager", build=square_jax, description="op by op, device-resident"),
        Variant(name="jit", how="jit", build=square_jax, description="one compiled program"),
        Variant(
            name="jit-highest",
            how="jit",
            build=square_jax,
            precision="highest",
            description="compiled, with full float32 products (no TF32, no bfloat16 passes)",
        ),
    ),
    inputs=inputs,
    estimate=estimate,
    has_dots=True,
    published=(
        Published(variant="numpy", phase="run", seconds=3.9, **_SOURCE),
        Published(
            variant="jax",
            phase="run",
            seconds=109e-3,
            caveat="whether the call was waited for, and on which device, is not said",
            **_SOURCE,
        ),
    ),
)
