"""Programs that shard by the names of axes: which mesh has them is said elsewhere."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P


def constrained(x, w):
    """The weight is as long as the batch."""
    x = jax.lax.with_sharding_constraint(x, P("data", None))
    return jnp.tanh(x @ w).sum()


def says_nothing(params, x):
    return jnp.tanh(x @ params["w1"]) @ params["w2"]


def says_nothing_inputs():
    def shape(*sizes):
        return jax.ShapeDtypeStruct(sizes, jnp.float32)

    return {"w1": shape(64, 256), "w2": shape(256, 64)}, shape(64, 64)


@functools.partial(jax.jit, donate_argnums=0)
def step(w, x):
    return w - 0.1 * (x.T @ (x @ w))


def step_shardings(mesh):
    return None, P(mesh.axis_names[0])


def adds_a_table(x):
    return x + (np.arange(40, dtype=np.float32) ** 2 + np.float32(0.5))
