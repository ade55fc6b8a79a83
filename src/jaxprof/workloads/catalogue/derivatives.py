"""What JAX differentiates: by reverse and forward mode, nested, and twice over. All are compared with finite
differences, or with an answer that is known."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jax, jnp, np, sizes
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Variant


def gradient_numpy(x):
    s = 1 / (1 + np.exp(-x))
    return s * (1 - s)


def gradient_inputs(random, n):
    """Return normal numbers, the first three of which are the published points."""
    x = random.standard_normal(n, dtype="float32")
    x[:3] = [0.0, 1.0, 2.0][:n]
    return x


def gradient_differences(x):
    """Return central differences in float64; one step serves all points, because each term depends on its x only."""

    def logistic(x):
        return 1 / (1 + np.exp(-x))

    x, step = x.astype(np.float64), 1e-5
    return (logistic(x + step) - logistic(x - step)) / (2 * step)


@workload(
    name="grad-logistic",
    title="grad(sum(1 / (1 + exp(-x))))",
    description=(
        "The gradient of a sum of logistic functions by reverse-mode differentiation, checked by finite differences. "
        "NumPy computes the derivative that was worked out by hand; compiled, the forward and the backward pass become "
        "one loop. `published` is the source's three points, where only the overhead of a call is left to see."
    ),
    factory=True,
    inputs=gradient_inputs,
    parameters=sizes(n="number of points; the first three are 0, 1 and 2"),
    presets={"quick": {"n": 1_000_000}, "published": {"n": 3}},
    numpy=gradient_numpy,
    expected=gradient_differences,
    against="finite differences",
    noisy_answer=True,
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=lambda n: Estimate(memory_bytes=4 * n * 6, flops=6 * n, traffic_bytes=2 * 4 * n),
    shardings=("0",),
)
def gradient():
    def sum_logistic(x):
        return jnp.sum(1.0 / (1.0 + jnp.exp(-x)))

    return jax.grad(sum_logistic)


def third_derivative_inputs(x):
    """Return a Python number, as in the quickstart: no array goes to the device before the call."""
    return float(x)


def known_answer(x):
    """Return s‴ in float64: s′ = s - s², hence s‴ = s′ (1 - 6 s′)."""
    s = 1 / (1 + np.exp(-np.float64(x)))
    slope = s * (1 - s)
    return slope * (1 - 6 * slope)


@workload(
    name="grad-nested",
    title="grad(jit(grad(jit(grad(f)))))(1.0)",
    description=(
        "The third derivative of a logistic function at one point, with jit and grad nested in each other. Nothing is "
        "computed to speak of: the first call shows what tracing and compiling cost, the steady run what it takes to "
        "dispatch a handful of scalar operations."
    ),
    factory=True,
    inputs=third_derivative_inputs,
    parameters={"x": Parameter(description="where the derivative is taken", kind="float", minimum=-10, maximum=10)},
    presets={"quick": {"x": 1.0}, "published": {"x": 1.0}},
    variants=[
        Variant(name="jax", how="eager", description="the outer grad op by op, what is inside compiled"),
    ],
    expected=known_answer,
    against="known answer",
    tolerance={"float32": 1e-4},
    matrix_products=False,
    estimate=lambda: Estimate(memory_bytes=12, traffic_bytes=12),
)
def third_derivative():
    def sum_logistic(x):
        return jnp.sum(1.0 / (1.0 + jnp.exp(-x)))

    return jax.grad(jax.jit(jax.grad(jax.jit(jax.grad(sum_logistic)))))


def hessian_numpy(x):
    second = np.zeros((4, 3, 3), x.dtype)
    second[2, 1, 1] = 8
    second[3, 0, 0] = -x[2] * np.sin(x[0])
    second[3, 0, 2] = second[3, 2, 0] = np.cos(x[0])
    return second


def hessian_inputs():
    return np.array([1.0, 2.0, 3.0], np.float32)


def hessian_differences(x):
    """Return second central differences in float64: (4, 3, 3)."""

    def f(x):
        return np.stack([x[0], 5 * x[2], 4 * x[1] ** 2 - 2 * x[2], x[2] * np.sin(x[0])])

    x, step = x.astype(np.float64), 1e-3
    i, j = step * np.eye(3)[:, :, None], step * np.eye(3)[:, None, :]  # (3, 3, 1) and (3, 1, 3): component, direction
    x = x[:, None, None]
    return (f(x + i + j) - f(x + i - j) - f(x - i + j) + f(x - i - j)) / (4 * step**2)


@workload(
    name="hessian",
    title="jacfwd(jacrev(f))",
    description=(
        "All second derivatives of f(x) = [x0, 5 x2, 4 x1² - 2 x2, x2 sin x0] at [1, 2, 3]: a 4×3×3 array, held "
        "against finite differences. Op by op it is some hundred dispatches for a few dozen numbers; compiled, one. "
        "NumPy fills in the derivatives that were worked out by hand."
    ),
    factory=True,
    inputs=hessian_inputs,
    numpy=hessian_numpy,
    expected=hessian_differences,
    against="finite differences",
    noisy_answer=True,
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=lambda: Estimate(memory_bytes=4 * (3 + 36), traffic_bytes=4 * (3 + 36)),
)
def hessian():
    def f(x):
        return jnp.asarray([x[0], 5 * x[2], 4 * x[1] ** 2 - 2 * x[2], x[2] * jnp.sin(x[0])])

    return jax.jacfwd(jax.jacrev(f))


def products_numpy(x, y, u, v, *, products):
    pulled = np.cos(x) * u, -np.sin(y) * v
    return pulled if products == "vjp" else (pulled, (np.cos(x) * u, -np.sin(y) * v))


def products_inputs(random, n):
    """Return normal numbers; the first point is (0.5, 1.0), and the vector there (0.5, 1.0) as well."""
    x, y, u, v = random.standard_normal((4, n), dtype="float32")
    x[0], y[0], u[0], v[0] = 0.5, 1.0, 0.5, 1.0
    return x, y, u, v


def products_differences(x, y, u, v, *, products):
    """Return central differences in float64. The Jacobian is diagonal, hence both products are the same numbers."""
    x, y, u, v = (array.astype(np.float64) for array in (x, y, u, v))
    step = 1e-5
    along_x = u * (np.sin(x + step) - np.sin(x - step)) / (2 * step)
    along_y = v * (np.cos(y + step) - np.cos(y - step)) / (2 * step)
    pulled = along_x, along_y
    return pulled if products == "vjp" else (pulled, pulled)


@workload(
    name="vjp-jvp",
    title="vjp and jvp of (sin x, cos y)",
    description=(
        "The vector-Jacobian and the Jacobian-vector product of an elementwise function. The Jacobian is diagonal, so "
        "both are cos(x) u and -sin(y) v: a compiler that notices does the work once. NumPy computes the derivatives "
        "that were worked out by hand; all are compared with finite differences. `published` is the vjp alone, at "
        "(0.5, 1.0) with the cotangents (0.5, 1.0)."
    ),
    inputs=products_inputs,
    parameters={
        **sizes(n="number of points"),
        "products": Parameter(description="which of them", kind="choice", choices=("vjp and jvp", "vjp")),
    },
    presets={"quick": {"n": 100_000, "products": "vjp and jvp"}, "published": {"n": 1, "products": "vjp"}},
    numpy=products_numpy,
    expected=products_differences,
    against="finite differences",
    noisy_answer=True,
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=lambda n: Estimate(memory_bytes=4 * n * 16, flops=10 * n, traffic_bytes=4 * n * 8),
    shardings=("0", "0", "0", "0"),
)
def jacobian_products(x, y, u, v, *, products):
    def f(x, y):
        return jnp.sin(x), jnp.cos(y)

    _, pullback = jax.vjp(f, x, y)
    pulled = pullback((u, v))
    if products == "vjp":
        return pulled
    _, tangents = jax.jvp(f, (x, y), (u, v))
    return pulled, tangents
