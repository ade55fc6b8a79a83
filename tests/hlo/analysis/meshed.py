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


def _asked_for(x):
    return lax.ppermute(lax.all_to_all(x, "d", 1, 0, tiled=True), "d", [(0, 1), (1, 2), (2, 3), (3, 0)])


def _layers(x, a, b):
    hidden = jnp.tanh(lax.with_sharding_constraint(x @ a, split("d", None)))
    return lax.with_sharding_constraint(hidden @ b, split(None, "d"))


def _both(x, w):
    return jnp.sin(x) + jnp.cos(w)


def _gradient(x, w):
    return w - jax.grad(lambda w: jnp.tanh(x @ w).sum())(w)


def _moved(*axes):
    return lambda x: lax.with_sharding_constraint(jnp.sin(x), split(*axes, mesh=SQUARE))


TALL, SWAPPED = array("d", None, shape=(4096, 1024)), array("a", "b", mesh=SQUARE)
PROGRAMS = {
    "rows and columns": (_both, array("d", None), array(None, "d")),
    "rows and rows": (_both, array("d", None), array("d", None)),
    "a split layer, then a whole one": (_layers, array("d", None), array(), array(None, "d")),
    "split layers that fit": (lambda x, a, b: jnp.tanh(x @ a) @ b, array(), array(None, "d"), array("d", None)),
    "swapped axes": (_moved("b", "a"), SWAPPED),
    "the same axes": (_moved("a", "b"), SWAPPED),
    "a split argument": (jnp.matmul, TALL, array("d", None)),
    "a whole argument": (jnp.matmul, TALL, array(None, None)),
    "split weights": (_gradient, TALL, array("d", None)),
    "a whole result": (jnp.sin, array("d", None)),
    "a border": (lambda x: jnp.roll(x, 300, 0), array("d", None)),
    "asked for": (
        jax.shard_map(_asked_for, mesh=LINE, in_specs=PartitionSpec("d"), out_specs=PartitionSpec(None, "d")),
        array("d", None),
    ),
}

for name, (function, *arguments) in PROGRAMS.items():
    out = split() if name == "a whole result" else None
    TEXTS[name] = jax.jit(function, out_shardings=out).lower(*arguments).compile().as_text()
json.dump(TEXTS, sys.stdout)
