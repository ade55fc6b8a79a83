"""scan-rnn: a loop whose steps wait for each other, as a scan and unrolled."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jax, jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Variant


def rnn_numpy(xs, W, U, b):
    h = np.zeros((xs.shape[1], U.shape[0]), xs.dtype)
    for x in xs:
        h = np.tanh(x @ W + h @ U + b)
    return h


def rnn_loop(xs, W, U, b):
    h = jnp.zeros((xs.shape[1], U.shape[0]), xs.dtype)
    for x in xs:
        h = jnp.tanh(x @ W + h @ U + b)
    return h


def inputs(random, length, batch, features, hidden):
    """Return weights small enough that a rounding error dies out over the steps, instead of growing."""
    xs = random.standard_normal((length, batch, features), dtype="float32")
    W = random.standard_normal((features, hidden), dtype="float32") / features**0.5
    U = random.standard_normal((hidden, hidden), dtype="float32") / (2 * hidden**0.5)
    return xs, W, U, random.standard_normal(hidden, dtype="float32")


def estimate(length, batch, features, hidden):
    weights = hidden * (features + hidden + 1)
    held = 4 * (length * batch * features + weights + batch * hidden)
    return Estimate(
        memory_bytes=held + 3 * 4 * batch * hidden,
        flops=length * batch * hidden * (2 * features + 2 * hidden + 3),
        traffic_bytes=held,
    )


@workload(
    title="scan of h = tanh(x W + h U + b)",
    description=(
        "A recurrent network over a sequence: every step needs the one before, so there is no more parallel work than "
        "one step holds. `scan` compiles the step once and loops on the device; `jit-unrolled` compiles the Python "
        "loop, and its compile time grows with the length; op by op, every step pays for its dispatches."
    ),
    inputs=inputs,
    parameters={
        "length": Parameter(description="steps of the sequence", minimum=1),
        "batch": Parameter(description="sequences side by side", minimum=1),
        "features": Parameter(description="length of one input", minimum=1),
        "hidden": Parameter(description="length of the state", minimum=1),
    },
    presets={
        "quick": {"length": 32, "batch": 16, "features": 64, "hidden": 128},
        "published": {"length": 256, "batch": 64, "features": 512, "hidden": 1024},
    },
    numpy=rnn_numpy,
    variants=[
        Variant(name="jax", how="eager", function=rnn_loop, description="op by op, a Python loop"),
        Variant(name="scan", how="jit", description="compiled, lax.scan: one step, looped on the device"),
        Variant(name="jit-unrolled", how="jit", function=rnn_loop, description="compiled, the Python loop unrolled"),
        Variant(
            name="scan-highest",
            how="jit",
            precision="highest",
            description="as scan, with full float32 products (no TF32, no bfloat16 passes)",
        ),
    ],
    estimate=estimate,
    shardings=("1", None, None, None),
)
def rnn(xs, W, U, b):
    def step(h, x):
        return jnp.tanh(x @ W + h @ U + b), None

    h, _ = jax.lax.scan(step, jnp.zeros((xs.shape[1], U.shape[0]), xs.dtype), xs)
    return h
