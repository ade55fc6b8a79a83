"""hessian: forward over reverse mode on a tiny function, where dispatch is everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameters, Published, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def hessian_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def hessian(x: Any) -> Any:
        second = np.zeros((4, 3, 3), x.dtype)
        second[2, 1, 1] = 8
        second[3, 0, 0] = -x[2] * np.sin(x[0])
        second[3, 0, 2] = second[3, 2, 0] = np.cos(x[0])
        return second

    return hessian


def hessian_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def f(x: Any) -> Any:
        return jnp.asarray([x[0], 5 * x[2], 4 * x[1] ** 2 - 2 * x[2], x[2] * jnp.sin(x[0])])

    return jax.jacfwd(jax.jacrev(f))


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    import numpy as np

    return (np.array([1.0, 2.0, 3.0], np.float32),)


def differences(parameters: Parameters, inputs: tuple[Any, ...]) -> Any:
    """Second central differences in float64: (4, 3, 3)."""
    import numpy as np

    def f(x: Any) -> Any:
        return np.stack([x[0], 5 * x[2], 4 * x[1] ** 2 - 2 * x[2], x[2] * np.sin(x[0])])

    x, step = inputs[0].astype(np.float64), 1e-3
    i, j = step * np.eye(3)[:, :, None], step * np.eye(3)[:, None, :]  # (3, 3, 1) and (3, 1, 3): component, direction
    x = x[:, None, None]
    return (f(x + i + j) - f(x + i - j) - f(x - i + j) + f(x - i - j)) / (4 * step**2)


def estimate(parameters: Parameters) -> Estimate:
    return Estimate(memory_bytes=4 * (3 + 36), traffic_bytes=4 * (3 + 36))


WORKLOAD = Workload(
    name="hessian",
    title="jacfwd(jacrev(f))",
    description=(
        "All second derivatives of f(x) = [x0, 5 x2, 4 x1² - 2 x2, x2 sin x0] at [1, 2, 3]: a 4×3×3 array, held "
        "against finite differences. Op by op it is some hundred dispatches for a few dozen numbers; compiled, one. "
        "NumPy fills in the derivatives that were worked out by hand."
    ),
    parameters=(),
    presets={"quick": {}, "published": {}},
    variants=(
        Variant(name="numpy", how="numpy", build=hessian_numpy, description="NumPy, derivatives worked out by hand"),
        Variant(name="jax", how="eager", build=hessian_jax, description="forward over reverse mode, op by op"),
        Variant(name="jit", how="jit", build=hessian_jax, description="jit(jacfwd(jacrev(f))), one compiled program"),
    ),
    inputs=inputs,
    expected=differences,
    against="finite differences",
    tolerance={"float32": 1e-5},
    estimate=estimate,
    published=(
        Published(
            variant="jit",
            phase="run",
            seconds=None,
            hardware="any",
            source="an article, not named",
            statistic="a value, not a time",
            text="4×3×3, all 0 but [2][1][1] = 8, [3][0][0] = -2.524413, [3][0][2] = [3][2][0] = 0.5403023",
        ),
    ),
)
