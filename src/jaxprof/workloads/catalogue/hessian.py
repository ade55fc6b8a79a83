"""hessian: forward over reverse mode on a tiny function, where dispatch is everything."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jax, jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate


def hessian_numpy(x):
    second = np.zeros((4, 3, 3), x.dtype)
    second[2, 1, 1] = 8
    second[3, 0, 0] = -x[2] * np.sin(x[0])
    second[3, 0, 2] = second[3, 2, 0] = np.cos(x[0])
    return second


def inputs():
    return np.array([1.0, 2.0, 3.0], np.float32)


def differences(x):
    """Return second central differences in float64: (4, 3, 3)."""

    def f(x):
        return np.stack([x[0], 5 * x[2], 4 * x[1] ** 2 - 2 * x[2], x[2] * np.sin(x[0])])

    x, step = x.astype(np.float64), 1e-3
    i, j = step * np.eye(3)[:, :, None], step * np.eye(3)[:, None, :]  # (3, 3, 1) and (3, 1, 3): component, direction
    x = x[:, None, None]
    return (f(x + i + j) - f(x + i - j) - f(x - i + j) + f(x - i - j)) / (4 * step**2)


def estimate():
    return Estimate(memory_bytes=4 * (3 + 36), traffic_bytes=4 * (3 + 36))


@workload(
    title="jacfwd(jacrev(f))",
    description=(
        "All second derivatives of f(x) = [x0, 5 x2, 4 x1² - 2 x2, x2 sin x0] at [1, 2, 3]: a 4×3×3 array, held "
        "against finite differences. Op by op it is some hundred dispatches for a few dozen numbers; compiled, one. "
        "NumPy fills in the derivatives that were worked out by hand."
    ),
    factory=True,
    inputs=inputs,
    numpy=hessian_numpy,
    expected=differences,
    against="finite differences",
    noisy_answer=True,
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=estimate,
)
def hessian():
    def f(x):
        return jnp.asarray([x[0], 5 * x[2], 4 * x[1] ** 2 - 2 * x[2], x[2] * jnp.sin(x[0])])

    return jax.jacfwd(jax.jacrev(f))
