"""Writes the HLO of JAX programs of many kinds into a folder: `python programs.py FOLDER [nvidia|tpu CONFIG]`.

Run as a process of its own, on 8 forced host devices, or for a vendor's device that is not here: its compiler is on the
path, and CONFIG describes the target. For each program: `NAME.txt` (as compiled) and `NAME.pb`, its proto as JAX's own
reader serialises it; of those for this host also `NAME.before.txt` (as lowered).
"""

import os
import sys
from pathlib import Path

if len(sys.argv) == 2:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import topologies
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxprof.workloads.specs import parse

PROGRAMS = {}


def program(arguments):
    """A program of these arrays, written as `f32[8,4] s32[]`."""
    shapes = [jax.ShapeDtypeStruct(spec.shape, spec.dtype) for spec in map(parse, arguments.split())]

    def add(function):
        PROGRAMS[function.__name__] = (function, shapes)
        return function

    return add


@program("f32[4,8] f32[8,8]")
def scan(x, w):
    return lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), x, None, length=5)


@program("f32[8] s32[]")
def branches(x, n):
    return lax.switch(n, [jnp.sin, jnp.cos, lambda y: y * 2], x), lax.cond(n > 0, jnp.exp, jnp.log, x)


@program("f32[64,3]")
def ordered(x):
    return jnp.sort(x, axis=0), lax.top_k(x[:, 1], 5), jnp.fft.rfft(x), jnp.linalg.qr(x), [x * n for n in range(20)]


@program("f32[2,3,16,16] f32[5,3,3,3]")
def image(x, k):
    y = lax.conv_general_dilated(x, k, (2, 1), "SAME", rhs_dilation=(1, 2))
    pooled = lax.reduce_window(y, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return pooled, jax.grad(lambda k: jax.nn.relu(lax.conv(x, k, (1, 1), "VALID")).sum())(k)


@program("f32[16,4] s32[3]")
def gather_and_scatter(x, i):
    return x[i], x.at[i].add(2.0), x.at[:, i].set(0.0)


@program("bf16[2,4,8,16]")
def attention(q):
    weights = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, q) / 4)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, q)


@program("f32[8,8] f32[8,8]")
def train_step(w, x):
    def loss(w):
        with jax.named_scope("model"):
            return jnp.mean((jnp.tanh(jnp.tanh(x @ w) @ w) - x) ** 2)

    value, gradient = jax.value_and_grad(loss)(w)
    return value, w - 0.1 * gradient


@program("s8[4,4] f16[3] f8e4m3fn[3] u32[3]")
def types(a, b, c, d):
    packed = (a.astype(jnp.int4) + 1).astype(jnp.int32)
    return packed, b.astype(jnp.float32), c.astype(jnp.bfloat16), d << 3, a > 0, b + 1j


@program("f32[3]")
def callback(x):
    jax.debug.print("value {x}", x=x)
    return jax.pure_callback(lambda y: np.asarray(y) * 2, jax.ShapeDtypeStruct((3,), jnp.float32), x)


@program("f32[5]")
def constants(x):
    table = np.arange(300, dtype=np.float32).reshape(3, 100)
    return x[0] + table, x + np.array([1, 2, 3, 4, np.inf], np.float32), np.float32("nan") * x


def sharded():
    """Collectives: two kinds of mesh, one with explicit collectives."""
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    rows = NamedSharding(mesh, PartitionSpec("data", None))
    columns = NamedSharding(mesh, PartitionSpec(None, "model"))
    x = jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=rows)
    w = jax.ShapeDtypeStruct((16, 4), jnp.float32, sharding=columns)
    yield "sharded_product", jax.jit(lambda x, w: (jnp.tanh(x @ w).sum(0), x.T), donate_argnums=0).lower(x, w)

    def exchange(x):
        y = lax.ppermute(x, "data", [(0, 1), (1, 2), (2, 3), (3, 0)])
        return lax.psum(y, "data"), lax.all_gather(y, "data", tiled=True), lax.all_to_all(y, "model", 1, 1, tiled=True)

    spec = PartitionSpec("data", "model")
    mapped = jax.shard_map(exchange, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    yield "exchange", jax.jit(mapped).lower(jax.ShapeDtypeStruct((8, 16), jnp.float32))


def target(vendor, config):
    """Some of the programs, and a step that is split over four devices."""
    if vendor == "tpu":
        topology = topologies.get_topology_desc("v5e:2x2", platform="tpu")
    else:
        described = {"topology_name": "h100", "target_config": config, "topology": "1x1x4"}
        topology = topologies.get_topology_desc(platform="cuda", **described)
    mesh = topologies.make_mesh(topology, (4,), ("data",))
    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    for name in ("train_step", "attention", "scan", "image", "ordered"):
        function, arguments = PROGRAMS[name]
        shapes = [jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=whole) for one in arguments]
        yield name, jax.jit(function).lower(*shapes)
    pair = [jax.ShapeDtypeStruct((256, 256), jnp.bfloat16, sharding=sharding) for sharding in (whole, split)]
    yield "data_parallel", jax.jit(train_step).lower(*pair)


def write(folder, *elsewhere):
    lowered = [(name, jax.jit(function).lower(*arguments)) for name, (function, arguments) in PROGRAMS.items()]
    for name, stage in target(*elsewhere) if elsewhere else [*lowered, *sharded()]:
        if not elsewhere:
            (folder / f"{name}.before.txt").write_text(stage.as_text("hlo"))
        (module,) = stage.compile().runtime_executable().hlo_modules()
        (folder / f"{name}.txt").write_text(module.to_string())
        (folder / f"{name}.pb").write_bytes(module.as_serialized_hlo_module_proto())


if __name__ == "__main__":
    folder, *rest = sys.argv[1:]
    write(Path(folder), *([rest[0], Path(rest[1]).read_text()] if rest else []))
