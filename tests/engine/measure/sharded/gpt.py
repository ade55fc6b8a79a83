"""A small GPT's weights: over two axes, the batch over one, layers in a scan, each computed again in the backward pass.

The mesh is made of `jax.devices()` where the file is imported, as programs do. `DEVICES` puts others in their place, so
that a test can have JAX compile the same file for the target's devices directly.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

DEVICES = globals().get("DEVICES") or jax.devices()
MESH = Mesh(np.array(DEVICES, dtype=object).reshape(-1, 2), ("data", "model"))
SPECS = {
    "embedding": P(None, "model"),
    "mixed": P(None, None, "model"),
    "up": P(None, None, "model"),
    "down": P(None, "model", None),
}
SIZES = {"embedding": (256, 64), "mixed": (2, 64, 64), "up": (2, 64, 256), "down": (2, 256, 64)}


def over(x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


def block(x, layer):
    scores = jnp.einsum("bqd,bkd->bqk", x @ layer["mixed"], x).astype(jnp.float32)
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool)), scores, -1e9)
    x = over(x + jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores).astype(x.dtype), x), "data", None, None)
    return over(x + jax.nn.gelu(x @ layer["up"]) @ layer["down"], "data", None, None), None


def loss(weights, words):
    x = over(weights["embedding"][words[:, :-1]], "data", None, None)
    layers = {name: weights[name] for name in ("mixed", "up", "down")}
    x, _ = jax.lax.scan(jax.checkpoint(block), x, layers)
    logits = jax.nn.log_softmax((x @ weights["embedding"].T).astype(jnp.float32))
    return -jnp.take_along_axis(logits, words[:, 1:, None], -1).mean()


@functools.partial(jax.jit, donate_argnums=0)
def train_step(weights, words):
    lost, gradients = jax.value_and_grad(loss)(weights, words)
    return jax.tree.map(lambda a, b: (a - 1e-3 * b).astype(a.dtype), weights, gradients), lost


def train_step_inputs():
    weights = {name: jax.ShapeDtypeStruct(shape, jnp.bfloat16) for name, shape in SIZES.items()}
    return weights, jax.ShapeDtypeStruct((16, 33), jnp.int32)


def train_step_shardings():
    return SPECS, P("data", None)
