"""scan-rnn: a loop whose steps wait for each other, as a scan and unrolled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def rnn_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def rnn(xs: Any, W: Any, U: Any, b: Any) -> Any:
        h = np.zeros((xs.shape[1], U.shape[0]), xs.dtype)
        for x in xs:
            h = np.tanh(x @ W + h @ U + b)
        return h

    return rnn


def rnn_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp

    def rnn(xs: Any, W: Any, U: Any, b: Any) -> Any:
        h = jnp.zeros((xs.shape[1], U.shape[0]), xs.dtype)
        for x in xs:
            h = jnp.tanh(x @ W + h @ U + b)
        return h

    return rnn


def scan_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def rnn(xs: Any, W: Any, U: Any, b: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            return jnp.tanh(x @ W + h @ U + b), None

        h, _ = jax.lax.scan(step, jnp.zeros((xs.shape[1], U.shape[0]), xs.dtype), xs)
        return h

    return rnn


def _sizes(parameters: Parameters) -> tuple[int, int, int, int]:
    length, batch, features, hidden = (int(parameters[name]) for name in ("length", "batch", "features", "hidden"))
    return length, batch, features, hidden


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    """Weights small enough that a rounding error dies out over the steps, instead of growing."""
    length, batch, features, hidden = _sizes(parameters)
    xs = random.standard_normal((length, batch, features), dtype="float32")
    W = random.standard_normal((features, hidden), dtype="float32") / features**0.5
    U = random.standard_normal((hidden, hidden), dtype="float32") / (2 * hidden**0.5)
    return xs, W, U, random.standard_normal(hidden, dtype="float32")


def estimate(parameters: Parameters) -> Estimate:
    length, batch, features, hidden = _sizes(parameters)
    weights = hidden * (features + hidden + 1)
    held = 4 * (length * batch * features + weights + batch * hidden)
    return Estimate(
        memory_bytes=held + 3 * 4 * batch * hidden,
        flops=length * batch * hidden * (2 * features + 2 * hidden + 3),
        traffic_bytes=held,
    )


WORKLOAD = Workload(
    name="scan-rnn",
    title="scan of h = tanh(x W + h U + b)",
    description=(
        "A recurrent network over a sequence: every step needs the one before, so there is no more parallel work than "
        "one step holds. `scan` compiles the step once and loops on the device; `jit-unrolled` compiles the Python "
        "loop, and its compile time grows with the length; op by op, every step pays for its dispatches."
    ),
    parameters=(
        Parameter(name="length", description="steps of the sequence", minimum=1),
        Parameter(name="batch", description="sequences side by side", minimum=1),
        Parameter(name="features", description="length of one input", minimum=1),
        Parameter(name="hidden", description="length of the state", minimum=1),
    ),
    presets={
        "quick": {"length": 32, "batch": 16, "features": 64, "hidden": 128},
        "published": {"length": 256, "batch": 64, "features": 512, "hidden": 1024},
    },
    variants=(
        Variant(name="numpy", how="numpy", build=rnn_numpy, description="NumPy, a Python loop"),
        Variant(name="jax", how="eager", build=rnn_jax, description="op by op, a Python loop"),
        Variant(
            name="scan", how="jit", build=scan_jax, description="compiled, lax.scan: one step, looped on the device"
        ),
        Variant(name="jit-unrolled", how="jit", build=rnn_jax, description="compiled, the Python loop unrolled"),
        Variant(
            name="scan-highest",
            how="jit",
            build=scan_jax,
            precision="highest",
            description="as scan, with full float32 products (no TF32, no bfloat16 passes)",
        ),
    ),
    inputs=inputs,
    estimate=estimate,
    has_dots=True,
)
