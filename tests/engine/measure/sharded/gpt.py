"""A small GPT: weights over two axes, the batch over one, layers in a scan, each computed again in the backward pass.

The mesh is made of `jax.devices()` where the file is imported, as programs do. `DEVICES` puts others in their place, so
that a test can have JAX compile the same file for the target's devices directly.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

DEVICES = globals().get("DEVICES") or jax.devices()
MESH = Mesh(np.array(DEVICES, dtype=object).reshape(-1, 2), ("data", "model"))
LAYERS, WIDTH, HEADS, WORDS, LENGTH = 2, 64, 4, 256, 32
SPECS = {
    "embedding": P(None, "model"),
    "qkv": P(None, None, "model"),
    "out": P(None, "model", None),
    "up": P(None, None, "model"),
    "down": P(None, "model", None),
}


def weights():
    def shape(*sizes):
        return jax.ShapeDtypeStruct(sizes, jnp.bfloat16)

    return {
        "embedding": shape(WORDS, WIDTH),
        "qkv": shape(LAYERS, WIDTH, 3 * WIDTH),
        "out": shape(LAYERS, WIDTH, WIDTH),
        "up": shape(LAYERS, WIDTH, 4 * WIDTH),
        "down": shape(LAYERS, 4 * WIDTH, WIDTH),
    }


def over(x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


def block(x, layer):
    batch, length, width = x.shape
    q, k, v = (
        part.reshape(batch, length, HEADS, width // HEADS).swapaxes(1, 2) for part in jnp.split(x @ layer["qkv"], 3, -1)
    )
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k).astype(jnp.float32)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores).astype(x.dtype), v)
    x = over(x + mixed.swapaxes(1, 2).reshape(x.shape) @ layer["out"], "data", None, None)
    return over(x + jax.nn.gelu(x @ layer["up"]) @ layer["down"], "data", None, None), None


def loss(weights, words):
    x = over(weights["embedding"][words[:, :-1]], "data", None, None)
    layers = {name: weights[name] for name in ("qkv", "out", "up", "down")}
    x, _ = jax.lax.scan(jax.checkpoint(block), x, layers)
    logits = jax.nn.log_softmax((x @ weights["embedding"].T).astype(jnp.float32))
    return -jnp.take_along_axis(logits, words[:, 1:, None], -1).mean()


@functools.partial(jax.jit, donate_argnums=0)
def train_step(weights, words):
    lost, gradients = jax.value_and_grad(loss)(weights, words)
    return jax.tree.map(lambda a, b: (a - 1e-3 * b).astype(a.dtype), weights, gradients), lost


def train_step_inputs():
    return weights(), jax.ShapeDtypeStruct((16, LENGTH + 1), jnp.int32)


def train_step_shardings():
    return SPECS, P("data", None)
