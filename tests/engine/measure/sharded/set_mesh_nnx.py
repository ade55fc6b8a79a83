"""A train step of flax's nnx: objects with their state, partitions on the parameters, a mesh for the whole file."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = Mesh(np.array(jax.devices()).reshape(-1, 2), ("data", "model"))
jax.set_mesh(MESH)


class Block(nnx.Module):
    def __init__(self, width, rngs):
        normal = nnx.initializers.lecun_normal()
        self.up = nnx.Linear(
            width, 4 * width, use_bias=False, kernel_init=nnx.with_partitioning(normal, (None, "model")), rngs=rngs
        )
        self.down = nnx.Param(nnx.with_partitioning(normal, ("model", None))(rngs.params(), (4 * width, width)))

    def __call__(self, x):
        hidden = jax.lax.with_sharding_constraint(jax.nn.gelu(self.up(x)), P("data", "model"))
        return x + hidden @ self.down


@nnx.jit
def create():
    model = Block(64, nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, x, y):
    """Gives the loss alone: what it does to the model and the optimiser is done to the objects."""
    loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
    optimizer.update(model, gradients)
    return loss


def train_step_inputs():
    batch = jax.device_put(np.zeros((32, 64), np.float32), NamedSharding(MESH, P("data", None)))
    return *create(), batch, batch
