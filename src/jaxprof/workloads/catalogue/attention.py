"""attention: two products with a softmax between them, of which the middle is the expensive part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def attention_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(q.shape[-1]))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True) @ v

    return attention


def attention_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.swapaxes(-1, -2) / jnp.sqrt(q.shape[-1])
        return jax.nn.softmax(scores, axis=-1) @ v

    return attention


def _sizes(parameters: Parameters) -> tuple[int, int, int, int]:
    batch, heads, length, depth = (int(parameters[name]) for name in ("batch", "heads", "length", "depth"))
    return batch, heads, length, depth


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    q, k, v = random.standard_normal((3, *_sizes(parameters)), dtype="float32")
    return q, k, v


def estimate(parameters: Parameters) -> Estimate:
    batch, heads, length, depth = _sizes(parameters)
    tokens, scores = batch * heads * length * depth, batch * heads * length**2
    return Estimate(
        memory_bytes=4 * (4 * tokens + 3 * scores),
        flops=4 * batch * heads * length**2 * depth + 5 * scores,
        traffic_bytes=4 * 4 * tokens,
    )


WORKLOAD = Workload(
    name="attention",
    title="softmax(q kᵀ / √depth) v",
    description=(
        "Scaled dot-product attention with several heads, in float32, without a mask. The least traffic is q, k, v and "
        "the result; written like this, the (length, length) scores go through memory as well, several times. How far "
        "the measured bytes are above the estimate is what a fused attention kernel would save."
    ),
    parameters=(
        Parameter(name="batch", description="sequences", minimum=1),
        Parameter(name="heads", description="attention heads", minimum=1),
        Parameter(name="length", description="tokens of a sequence", minimum=1),
        Parameter(name="depth", description="features of a head", minimum=1),
    ),
    presets={
        "quick": {"batch": 1, "heads": 4, "length": 256, "depth": 64},
        "published": {"batch": 4, "heads": 16, "length": 2048, "depth": 64},
    },
    variants=(
        Variant(name="numpy", how="numpy", build=attention_numpy, description="NumPy on the host"),
        Variant(name="jax", how="eager", build=attention_jax, description="op by op, device-resident"),
        Variant(name="jit", how="jit", build=attention_jax, description="one compiled program"),
        Variant(
            name="jit-highest",
            how="jit",
            build=attention_jax,
            precision="highest",
            description="compiled, with full float32 products (no TF32, no bfloat16 passes)",
        ),
    ),
    inputs=inputs,
    estimate=estimate,
    has_dots=True,
)
