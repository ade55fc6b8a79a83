"""grad-nested: differentiation and compilation, each inside the other, three times over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload, published_value

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def third_derivative_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp
    from jax import grad, jit

    def sum_logistic(x: Any) -> Any:
        return jnp.sum(1.0 / (1.0 + jnp.exp(-x)))

    return grad(jit(grad(jit(grad(sum_logistic)))))


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    import numpy as np

    return (np.float32(parameters["x"]),)


def third_derivative(parameters: Parameters, inputs: tuple[Any, ...]) -> Any:
    """s′ = s - s², hence s‴ = s′ (1 - 6 s′), in float64."""
    import numpy as np

    s = 1 / (1 + np.exp(-np.float64(inputs[0])))
    slope = s * (1 - s)
    return slope * (1 - 6 * slope)


def estimate(parameters: Parameters) -> Estimate:
    return Estimate(memory_bytes=8, traffic_bytes=8)


WORKLOAD = Workload(
    name="grad-nested",
    title="grad(jit(grad(jit(grad(f)))))(1.0)",
    description=(
        "The third derivative of a logistic function at one point, with jit and grad nested in each other. Nothing is "
        "computed to speak of: the first call shows what tracing and compiling cost, the steady run what it takes to "
        "dispatch a handful of scalar operations."
    ),
    parameters=(
        Parameter(name="x", description="where the derivative is taken", kind="float", minimum=-10, maximum=10),
    ),
    presets={"quick": {"x": 1.0}, "published": {"x": 1.0}},
    variants=(
        Variant(
            name="jax",
            how="eager",
            build=third_derivative_jax,
            description="the outer grad op by op, what is inside compiled",
        ),
    ),
    baseline="jax",
    inputs=inputs,
    expected=third_derivative,
    against="known answer",
    tolerance={"float32": 1e-4},
    estimate=estimate,
    published=(published_value("JAX quickstart", {"x": 1.0}, "-0.0353256"),),
)
