"""Small programs that shard themselves, each in another way."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = Mesh(np.array(jax.devices()).reshape(-1, 2), ("data", "model"))
EXPLICIT = jax.make_mesh((len(jax.devices()) // 2, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)


def over(*axes):
    return NamedSharding(MESH, P(*axes))


@functools.partial(jax.jit, in_shardings=(over("data", None), over(None, "model")), out_shardings=over("data", "model"))
def by_jit(x, w):
    return x @ w


@jax.jit
def by_shard_map(x, w):
    def product(a, b):
        return jax.lax.psum(a @ b, "model")

    return jax.shard_map(
        product, mesh=MESH, in_specs=(P("data", "model"), P("model", None)), out_specs=P("data", None)
    )(x, w)


gathered = jax.jit(lambda x: x * 2, in_shardings=over("data"), out_shardings=over())


def by_arrays(x, w):
    return x @ w


def by_arrays_inputs():
    return (
        jax.device_put(np.zeros((64, 64), np.float32), over("data", None)),
        jax.device_put(np.zeros((64, 64), np.float32), over(None, "model")),
    )


def by_types(x, w):
    def layer(x, _):
        return jnp.tanh(x @ w), None

    return jax.lax.scan(layer, x, None, length=3)[0].sum()


def by_types_inputs():
    def shape(*axes):
        return jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=NamedSharding(EXPLICIT, P(*axes)))

    return shape("data", None), shape(None, None)
