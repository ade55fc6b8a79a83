"""attention: two products with a softmax between them, of which the middle is the expensive part."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jax, jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter


def attention_numpy(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(q.shape[-1]))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def estimate(batch, heads, length, depth):
    tokens, scores = batch * heads * length * depth, batch * heads * length**2
    return Estimate(
        memory_bytes=4 * (4 * tokens + 3 * scores),
        flops=4 * batch * heads * length**2 * depth + 5 * scores,
        traffic_bytes=4 * 4 * tokens,
    )


@workload(
    title="softmax(q kᵀ / √depth) v",
    description=(
        "Scaled dot-product attention with several heads, in float32, without a mask. The least traffic is q, k, v and "
        "the result; written like this, the (length, length) scores go through memory as well, several times. How far "
        "the measured bytes are above the estimate is what a fused attention kernel would save."
    ),
    inputs=["f32[batch,heads,length,depth]"] * 3,
    parameters={
        "batch": Parameter(description="sequences", minimum=1),
        "heads": Parameter(description="attention heads", minimum=1),
        "length": Parameter(description="tokens of a sequence", minimum=1),
        "depth": Parameter(description="features of a head", minimum=1),
    },
    presets={
        "quick": {"batch": 1, "heads": 4, "length": 256, "depth": 64},
        "published": {"batch": 4, "heads": 16, "length": 2048, "depth": 64},
    },
    numpy=attention_numpy,
    variants=["jax", "jit", "jit-highest"],
    estimate=estimate,
    shardings=("0", "0", "0"),
)
def attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / jnp.sqrt(q.shape[-1])
    return jax.nn.softmax(scores, axis=-1) @ v
