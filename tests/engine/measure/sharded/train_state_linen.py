"""A train step of flax's linen: a TrainState made in place by `jit(out_shardings)`, logical axes, a donated state."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.experimental import mesh_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = Mesh(mesh_utils.create_device_mesh((len(jax.devices()) // 2, 2)), ("data", "model"))
RULES = (("batch", "data"), ("embed", None), ("mlp", "model"))
NORMAL = nn.initializers.lecun_normal()


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        up = nn.Dense(256, kernel_init=nn.with_logical_partitioning(NORMAL, ("embed", "mlp")))
        down = nn.Dense(x.shape[-1], kernel_init=nn.with_logical_partitioning(NORMAL, ("mlp", "embed")))
        return down(nn.with_logical_constraint(nn.gelu(up(x)), ("batch", "mlp"), mesh=MESH, rules=RULES))


MODEL = MLP()


def create(key, x):
    params = MODEL.init(key, x)["params"]
    return train_state.TrainState.create(apply_fn=MODEL.apply, params=params, tx=optax.adam(1e-3))


ABSTRACT = jax.eval_shape(create, jax.random.key(0), jnp.zeros((32, 64)))
STATE = nn.logical_to_mesh_sharding(nn.get_partition_spec(ABSTRACT), MESH, RULES)


def _train_step(state, x):
    loss, gradients = jax.value_and_grad(lambda params: (state.apply_fn({"params": params}, x) ** 2).mean())(
        state.params
    )
    return state.apply_gradients(grads=gradients), loss


train_step = jax.jit(
    _train_step,
    in_shardings=(STATE, NamedSharding(MESH, P("data", None))),
    out_shardings=(STATE, None),
    donate_argnums=0,
)


def train_step_inputs():
    state = jax.jit(create, out_shardings=STATE)(jax.random.key(0), jnp.zeros((32, 64)))
    return state, jnp.zeros((32, 64))
