"""A train step of equinox: a model with functions among its leaves, batch statistics in a state, all of it donated."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = Mesh(np.array(jax.devices()), ("batch",))
BATCH, WHOLE = NamedSharding(MESH, P("batch")), NamedSharding(MESH, P())
OPTIMIZER = optax.adam(1e-3)


class Net(eqx.Module):
    first: eqx.nn.Linear
    norm: eqx.nn.BatchNorm
    rest: eqx.nn.MLP

    def __init__(self, key):
        a, b = jax.random.split(key)
        self.first = eqx.nn.Linear(32, 64, key=a)
        self.norm = eqx.nn.BatchNorm(64, "batch", mode="batch")
        self.rest = eqx.nn.MLP(64, 8, 64, 1, key=b)

    def __call__(self, x, state):
        x, state = self.norm(self.first(x), state)
        return self.rest(jax.nn.relu(x)), state


@eqx.filter_jit(donate="all")
def train_step(model, state, moments, x, y):
    model, state, moments = eqx.filter_shard((model, state, moments), WHOLE)
    x, y = eqx.filter_shard((x, y), BATCH)

    def loss(model, state):
        guess, state = jax.vmap(model, in_axes=(0, None), out_axes=(0, None), axis_name="batch")(x, state)
        return optax.softmax_cross_entropy_with_integer_labels(guess, y).mean(), state

    (lost, state), gradients = eqx.filter_value_and_grad(loss, has_aux=True)(model, state)
    updates, moments = OPTIMIZER.update(gradients, moments)
    return eqx.filter_shard((eqx.apply_updates(model, updates), state, moments), WHOLE), lost


def train_step_inputs(batch: int = 64):
    model, state = eqx.nn.make_with_state(Net)(jax.random.key(0))
    moments = OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))
    return model, state, moments, np.zeros((batch, 32), np.float32), np.zeros(batch, np.int32)
