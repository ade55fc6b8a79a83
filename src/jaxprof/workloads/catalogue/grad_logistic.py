"""grad-logistic: a reverse-mode gradient that everybody can check by hand."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jax, jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import THINKING_IN_JAX, Estimate, Parameter, published_value


def gradient_numpy(x):
    s = 1 / (1 + np.exp(-x))
    return s * (1 - s)


def inputs(random, n):
    """Return normal numbers, the first three of which are the published points."""
    x = random.standard_normal(n, dtype="float32")
    x[:3] = [0.0, 1.0, 2.0][:n]
    return x


def differences(x):
    """Return central differences in float64; one step serves all points, because each term depends on its x only."""

    def logistic(x):
        return 1 / (1 + np.exp(-x))

    x, step = x.astype(np.float64), 1e-5
    return (logistic(x + step) - logistic(x - step)) / (2 * step)


def estimate(n):
    return Estimate(memory_bytes=4 * n * 6, flops=6 * n, traffic_bytes=2 * 4 * n)


@workload(
    title="grad(sum(1 / (1 + exp(-x))))",
    description=(
        "The gradient of a sum of logistic functions by reverse-mode differentiation, checked by finite differences. "
        "NumPy computes the derivative that was worked out by hand; compiled, the forward and the backward pass become "
        "one loop. `published` is the source's three points, where only the overhead of a call is left to see."
    ),
    factory=True,
    inputs=inputs,
    parameters={"n": Parameter(description="number of points; the first three are 0, 1 and 2", minimum=1)},
    presets={"quick": {"n": 1_000_000}, "published": {"n": 3}},
    numpy=gradient_numpy,
    expected=differences,
    against="finite differences",
    noisy_answer=True,
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=estimate,
    shardings=("0",),
    published=(published_value(THINKING_IN_JAX, {"n": 3}, "[0.25, 0.19661197, 0.10499357]"),),
)
def gradient():
    def sum_logistic(x):
        return jnp.sum(1.0 / (1.0 + jnp.exp(-x)))

    return jax.grad(sum_logistic)
