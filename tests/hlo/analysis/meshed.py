"""Writes the HLO of programs on a mesh of four CPU devices to stdout, as JSON by their names.

Run as a process of its own: the number of devices is fixed once JAX has started.
"""

from __future__ import annotations

import json
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

LINE = Mesh(np.array(jax.devices()), ("d",))
SQUARE = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
SIZE = (1024, 1024)
TEXTS: dict[str, str] = {}


def split(*axes, mesh=LINE):
    return NamedSharding(mesh, PartitionSpec(*axes))


def array(*axes, mesh=LINE, shape=SIZE):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=split(*axes, mesh=mesh))


def program(*arguments, out=None):
    def write(function):
        lowered = jax.jit(function, out_shardings=out).lower(*arguments)
        TEXTS[function.__name__] = lowered.compile().as_text()
        return function

    return write


@program(array("d", None), array(None, "d"))
def rows_and_columns(x, w):
    return jnp.sin(x) + jnp.cos(w)


@program(array("d", None), array("d", None))
def rows_and_rows(x, w):
    return jnp.sin(x) + jnp.cos(w)


@program(array("d", None), array(), array(None, "d"))
def split_layer_then_whole(x, a, b):
    hidden = jnp.tanh(lax.with_sharding_constraint(x @ a, split("d", None)))
    return lax.with_sharding_constraint(hidden @ b, split(None, "d"))


@program(array(), array(None, "d"), array("d", None))
def split_layers_that_fit(x, a, b):
    return jnp.tanh(x @ a) @ b


@program(array("a", "b", mesh=SQUARE))
def swapped_axes(x):
    return lax.with_sharding_constraint(jnp.sin(x), split("b", "a", mesh=SQUARE))


@program(array("a", "b", mesh=SQUARE))
def the_same_axes(x):
    return lax.with_sharding_constraint(jnp.sin(x), split("a", "b", mesh=SQUARE))


@program(array("d", None, shape=(4096, 1024)), array("d", None))
def split_argument(x, w):
    return x @ w


@program(array("d", None, shape=(4096, 1024)), array(None, None))
def whole_argument(x, w):
    return x @ w


@program(array("d", None, shape=(4096, 1024)), array("d", None))
def split_weights(x, w):
    return w - jax.grad(lambda w: jnp.tanh(x @ w).sum())(w)


@program(array("d", None), out=split())
def whole_result(x):
    return jnp.sin(x)


@program(array("d", None))
def border(x):
    return jnp.roll(x, 300, 0)


def _asked_for(x):
    return lax.ppermute(lax.all_to_all(x, "d", 1, 0, tiled=True), "d", [(0, 1), (1, 2), (2, 3), (3, 0)])


@program(array("d", None))
def asked_for(x):
    return jax.shard_map(_asked_for, mesh=LINE, in_specs=PartitionSpec("d"), out_specs=PartitionSpec(None, "d"))(x)


json.dump(TEXTS, sys.stdout)
