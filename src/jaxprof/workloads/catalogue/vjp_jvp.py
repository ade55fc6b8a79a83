"""vjp-jvp: the two products with a Jacobian that reverse and forward mode are made of."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jax, jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Variant


def products_numpy(products):
    def vjp(x, y, u, v):
        return np.cos(x) * u, -np.sin(y) * v

    def both(x, y, u, v):
        return (np.cos(x) * u, -np.sin(y) * v), (np.cos(x) * u, -np.sin(y) * v)

    return vjp if products == "vjp" else both


def inputs(random, n):
    """Return normal numbers; the first point is (0.5, 1.0), and the vector there (0.5, 1.0) as well."""
    x, y, u, v = random.standard_normal((4, n), dtype="float32")
    x[0], y[0], u[0], v[0] = 0.5, 1.0, 0.5, 1.0
    return x, y, u, v


def differences(x, y, u, v, *, products):
    """Return central differences in float64. The Jacobian is diagonal, hence both products are the same numbers."""
    x, y, u, v = (array.astype(np.float64) for array in (x, y, u, v))
    step = 1e-5
    along_x = u * (np.sin(x + step) - np.sin(x - step)) / (2 * step)
    along_y = v * (np.cos(y + step) - np.cos(y - step)) / (2 * step)
    pulled = along_x, along_y
    return pulled if products == "vjp" else (pulled, pulled)


def estimate(n):
    return Estimate(memory_bytes=4 * n * 16, flops=10 * n, traffic_bytes=4 * n * 8)


@workload(
    title="vjp and jvp of (sin x, cos y)",
    description=(
        "The vector-Jacobian and the Jacobian-vector product of an elementwise function. The Jacobian is diagonal, so "
        "both are cos(x) u and -sin(y) v: a compiler that notices does the work once. NumPy computes the derivatives "
        "that were worked out by hand; all are compared with finite differences. `published` is the vjp alone, at "
        "(0.5, 1.0) with the cotangents (0.5, 1.0)."
    ),
    factory=True,
    inputs=inputs,
    parameters={
        "n": Parameter(description="number of points", minimum=1),
        "products": Parameter(description="which of them", kind="choice", choices=("vjp and jvp", "vjp")),
    },
    presets={"quick": {"n": 100_000, "products": "vjp and jvp"}, "published": {"n": 1, "products": "vjp"}},
    variants=[
        Variant(
            name="numpy",
            how="numpy",
            function=products_numpy,
            factory=True,
            description="NumPy, derivatives worked out by hand",
        ),
        "jax",
        "jit",
    ],
    expected=differences,
    against="finite differences",
    noisy_answer=True,
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=estimate,
    shardings=("0", "0", "0", "0"),
)
def products_jax(products):
    def f(x, y):
        return jnp.sin(x), jnp.cos(y)

    def vjp(x, y, u, v):
        _, pullback = jax.vjp(f, x, y)
        return pullback((u, v))

    def both(x, y, u, v):
        _, tangents = jax.jvp(f, (x, y), (u, v))
        return vjp(x, y, u, v), tangents

    return vjp if products == "vjp" else both
