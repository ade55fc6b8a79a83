"""grad-nested: differentiation and compilation, each inside the other, three times over."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jax, jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import THINKING_IN_JAX, Estimate, Parameter, Variant, published_value


def inputs(x):
    """Return a Python number, as in the quickstart: no array goes to the device before the call."""
    return float(x)


def known_answer(x):
    """Return s‴ in float64: s′ = s - s², hence s‴ = s′ (1 - 6 s′)."""
    s = 1 / (1 + np.exp(-np.float64(x)))
    slope = s * (1 - s)
    return slope * (1 - 6 * slope)


def estimate():
    return Estimate(memory_bytes=12, traffic_bytes=12)


@workload(
    title="grad(jit(grad(jit(grad(f)))))(1.0)",
    description=(
        "The third derivative of a logistic function at one point, with jit and grad nested in each other. Nothing is "
        "computed to speak of: the first call shows what tracing and compiling cost, the steady run what it takes to "
        "dispatch a handful of scalar operations."
    ),
    factory=True,
    inputs=inputs,
    parameters={"x": Parameter(description="where the derivative is taken", kind="float", minimum=-10, maximum=10)},
    presets={"quick": {"x": 1.0}, "published": {"x": 1.0}},
    variants=[
        Variant(name="jax", how="eager", description="the outer grad op by op, what is inside compiled"),
    ],
    expected=known_answer,
    against="known answer",
    tolerance={"float32": 1e-4},
    matrix_products=False,
    estimate=estimate,
    published=(published_value(THINKING_IN_JAX, {"x": 1.0}, "-0.0353256"),),
)
def third_derivative():
    def sum_logistic(x):
        return jnp.sum(1.0 / (1.0 + jnp.exp(-x)))

    return jax.grad(jax.jit(jax.grad(jax.jit(jax.grad(sum_logistic)))))
