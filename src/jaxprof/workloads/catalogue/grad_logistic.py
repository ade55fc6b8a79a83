"""grad-logistic: a reverse-mode gradient that everybody can check by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload, published_value

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def gradient_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def gradient(x: Any) -> Any:
        s = 1 / (1 + np.exp(-x))
        return s * (1 - s)

    return gradient


def gradient_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def sum_logistic(x: Any) -> Any:
        return jnp.sum(1.0 / (1.0 + jnp.exp(-x)))

    return jax.grad(sum_logistic)


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    """Normal numbers, of which the first three are the published points."""
    n = int(parameters["n"])
    x = random.standard_normal(n, dtype="float32")
    x[:3] = [0.0, 1.0, 2.0][:n]
    return (x,)


def differences(parameters: Parameters, inputs: tuple[Any, ...]) -> Any:
    """Central differences in float64; one step serves all points, because each term depends on its own x only."""
    import numpy as np

    def logistic(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    (x,), step = inputs, 1e-5
    x = x.astype(np.float64)
    return (logistic(x + step) - logistic(x - step)) / (2 * step)


def estimate(parameters: Parameters) -> Estimate:
    n = float(parameters["n"])
    return Estimate(memory_bytes=4 * n * 6, flops=6 * n, traffic_bytes=2 * 4 * n)


WORKLOAD = Workload(
    name="grad-logistic",
    title="grad(sum(1 / (1 + exp(-x))))",
    description=(
        "The gradient of a sum of logistic functions by reverse-mode differentiation, held against finite differences. "
        "NumPy computes the derivative that was worked out by hand; compiled, the forward and the backward pass become "
        "one loop. `published` is the source's three points, where only the overhead of a call is left to see."
    ),
    parameters=(Parameter(name="n", description="number of points; the first three are 0, 1 and 2", minimum=1),),
    presets={"quick": {"n": 1_000_000}, "published": {"n": 3}},
    variants=(
        Variant(name="numpy", how="numpy", build=gradient_numpy, description="NumPy, derivative worked out by hand"),
        Variant(name="jax", how="eager", build=gradient_jax, description="grad, op by op"),
        Variant(name="jit", how="jit", build=gradient_jax, description="jit(grad(f)), one compiled program"),
    ),
    inputs=inputs,
    expected=differences,
    against="finite differences",
    tolerance={"float32": 1e-5},
    estimate=estimate,
    published=(published_value("JAX quickstart", {"n": 3}, "[0.25, 0.19661194, 0.10499357]"),),
)
