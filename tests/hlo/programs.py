"""Writes the HLO of JAX programs of many kinds into a folder: `python programs.py FOLDER`.

Run as a process of its own, on 8 forced host devices. For each program: `NAME.before.txt` (as lowered) and `NAME.txt`
(as compiled), and `NAME.pb`, the compiled module's proto as JAX's own reader serialises it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.sharding import AxisType, NamedSharding, PartitionSpec

F = jnp.zeros
PROGRAMS = {}


def program(*arguments):
    def add(function):
        PROGRAMS[function.__name__] = (function, arguments)
        return function

    return add


@program(F((1000,)))
def selu(x):
    return 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)


@program(F((4, 8)), F((8, 8)))
def scan(x, w):
    return lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), x, None, length=5)


@program(F((8,)))
def loop(x):
    return lax.while_loop(lambda s: s[0] < 7, lambda s: (s[0] + 1, s[1] * 1.5), (0, x))


@program(F((8,)), 1)
def branches(x, n):
    return lax.switch(n, [jnp.sin, jnp.cos, lambda y: y * 2], x), lax.cond(n > 0, jnp.exp, jnp.log, x)


@program(F((64, 3)))
def ordered(x):
    return jnp.sort(x, axis=0), jnp.argsort(x[:, 0]), lax.top_k(x[:, 1], 5)


@program(F((4, 16)))
def fourier(x):
    return jnp.fft.rfft(x), jnp.fft.fft(x.astype(jnp.complex64))


@program(jnp.eye(6))
def linear_algebra(x):
    return jnp.linalg.cholesky(x), jnp.linalg.solve(x, x), jnp.linalg.eigh(x), jnp.linalg.qr(x), jnp.linalg.svd(x)


@program(F((2, 3, 16, 16)), F((5, 3, 3, 3)))
def convolution(x, k):
    y = lax.conv_general_dilated(x, k, (2, 1), "SAME", rhs_dilation=(1, 2))
    return lax.reduce_window(y, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


@program(F((2, 3, 16, 16)), F((5, 3, 3, 3)))
def convolution_gradient(x, k):
    return jax.grad(lambda k: jax.nn.relu(lax.conv(x, k, (1, 1), "VALID")).sum())(k)


@program(F((16, 4)), jnp.arange(3))
def gather_and_scatter(x, i):
    return x[i], x.at[i].add(2.0), x.at[:, i].set(0.0), jnp.segment_sum(x, i) if hasattr(jnp, "segment_sum") else x


@program(F((2, 4, 8, 16), jnp.bfloat16))
def attention(q):
    weights = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, q) / 4)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, q)


@program(F((8, 8)), F((8, 8)))
def train_step(w, x):
    def loss(w):
        with jax.named_scope("model"):
            return jnp.mean((jnp.tanh(jnp.tanh(x @ w) @ w) - x) ** 2)

    value, gradient = jax.value_and_grad(loss)(w)
    return value, w - 0.1 * gradient


@program(jax.random.key(0))
def random(key):
    a, b = jax.random.split(key)
    return jax.random.normal(a, (7,)), jax.random.permutation(b, 9), jax.random.randint(a, (3,), 0, 9)


@program(F((4, 4), jnp.int8), F((3,), jnp.float16), F((3,), jnp.float8_e4m3fn), F((3,), jnp.uint32))
def types(a, b, c, d):
    packed = (a.astype(jnp.int4) + 1).astype(jnp.int32)
    return packed, b.astype(jnp.float32), c.astype(jnp.bfloat16), d << 3, a > 0, b + 1j


@program(F((3,)))
def callback(x):
    jax.debug.print("value {x}", x=x)
    return jax.pure_callback(lambda y: np.asarray(y) * 2, jax.ShapeDtypeStruct((3,), jnp.float32), x)


@program(F((5,)))
def constants(x):
    table = np.arange(300, dtype=np.float32).reshape(3, 100)
    return x[0] + table, x + np.array([1, 2, 3, 4, np.inf], np.float32), np.float32("nan") * x


@program(F((16, 16)))
def pallas(x):
    def kernel(read, write):
        write[...] = jnp.maximum(read[...], 0.0) * 2

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x)


@program(F((6,)))
def many_results(x):
    return [x * n for n in range(40)]


@program(F((8, 4, 4)))
def mapped(x):
    return jax.vmap(lambda a: lax.fori_loop(0, 3, lambda _, b: b @ a, a))(x)


@program(F((8, 8)))
def rematerialised(x):
    @jax.checkpoint
    def block(y):
        return jnp.sin(jnp.cos(y @ y))

    return jax.grad(lambda y: block(block(y)).sum())(x)


def sharded():
    """Collectives: two kinds of mesh, one with explicit collectives."""
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    rows = NamedSharding(mesh, PartitionSpec("data", None))
    columns = NamedSharding(mesh, PartitionSpec(None, "model"))
    x = jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=rows)
    w = jax.ShapeDtypeStruct((16, 4), jnp.float32, sharding=columns)
    yield "sharded_product", jax.jit(lambda x, w: jnp.tanh(x @ w).sum(0)).lower(x, w)
    yield "sharded_donated", jax.jit(lambda x: (x * 2).T, donate_argnums=0).lower(x)

    def exchange(x):
        y = lax.ppermute(x, "data", [(0, 1), (1, 2), (2, 3), (3, 0)])
        return lax.psum(y, "data"), lax.all_gather(y, "data", tiled=True), lax.all_to_all(y, "model", 1, 1, tiled=True)

    spec = PartitionSpec("data", "model")
    mapped = jax.shard_map(exchange, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    yield "exchange", jax.jit(mapped).lower(jax.ShapeDtypeStruct((8, 16), jnp.float32))


def write(folder: Path) -> None:
    lowered = [(name, jax.jit(function).lower(*arguments)) for name, (function, arguments) in PROGRAMS.items()]
    for name, stage in [*lowered, *sharded()]:
        (folder / f"{name}.before.txt").write_text(stage.as_text("hlo"))
        (module,) = stage.compile().runtime_executable().hlo_modules()
        (folder / f"{name}.txt").write_text(module.to_string())
        (folder / f"{name}.pb").write_bytes(module.as_serialized_hlo_module_proto())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
