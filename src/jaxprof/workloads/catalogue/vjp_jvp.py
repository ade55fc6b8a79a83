"""vjp-jvp: the two products with a Jacobian that reverse and forward mode are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload, published_value

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def products_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def products(x: Any, y: Any, u: Any, v: Any) -> Any:
        return (np.cos(x) * u, -np.sin(y) * v), (np.cos(x) * u, -np.sin(y) * v)

    return products


def products_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x), jnp.cos(y)

    def products(x: Any, y: Any, u: Any, v: Any) -> Any:
        _, pullback = jax.vjp(f, x, y)
        _, tangents = jax.jvp(f, (x, y), (u, v))
        return pullback((u, v)), tangents

    return products


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    """Normal numbers; the first point is (0.5, 1.0), with the vector (-0.7, 0.3)."""
    n = int(parameters["n"])
    x, y, u, v = random.standard_normal((4, n), dtype="float32")
    x[0], y[0], u[0], v[0] = 0.5, 1.0, -0.7, 0.3
    return x, y, u, v


def differences(parameters: Parameters, inputs: tuple[Any, ...]) -> Any:
    """Central differences in float64. The Jacobian is diagonal, hence both products are the same numbers."""
    import numpy as np

    x, y, u, v = (array.astype(np.float64) for array in inputs)
    step = 1e-5
    along_x = u * (np.sin(x + step) - np.sin(x - step)) / (2 * step)
    along_y = v * (np.cos(y + step) - np.cos(y - step)) / (2 * step)
    return (along_x, along_y), (along_x, along_y)


def estimate(parameters: Parameters) -> Estimate:
    n = float(parameters["n"])
    return Estimate(memory_bytes=4 * n * 16, flops=10 * n, traffic_bytes=4 * n * 8)


WORKLOAD = Workload(
    name="vjp-jvp",
    title="vjp and jvp of (sin x, cos y)",
    description=(
        "The vector-Jacobian and the Jacobian-vector product of an elementwise function. The Jacobian is diagonal, so "
        "both are cos(x) u and -sin(y) v: a compiler that notices does the work once. NumPy computes the derivatives "
        "that were worked out by hand; all are held against finite differences."
    ),
    parameters=(Parameter(name="n", description="number of points", minimum=1),),
    presets={"quick": {"n": 100_000}, "published": {"n": 1}},
    variants=(
        Variant(name="numpy", how="numpy", build=products_numpy, description="NumPy, derivatives worked out by hand"),
        Variant(name="jax", how="eager", build=products_jax, description="vjp, then jvp, op by op"),
        Variant(name="jit", how="jit", build=products_jax, description="both in one compiled program"),
    ),
    inputs=inputs,
    expected=differences,
    against="finite differences",
    tolerance={"float32": 1e-5},
    estimate=estimate,
    published=(published_value("analytic", {"n": 1}, "cos(x) u and -sin(y) v, for the vjp as for the jvp"),),
)
