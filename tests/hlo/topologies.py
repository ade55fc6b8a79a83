"""Writes the HLO of programs compiled for a device that is not here: `python topologies.py nvidia|tpu CONFIG FOLDER`.

Run as a process of its own, with the vendor's compiler on its path. CONFIG is the text of the target's description, for
NVIDIA. For each program: `NAME.txt` and `NAME.pb`, as `programs.py` has them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import topologies
from jax.sharding import NamedSharding, PartitionSpec


def train_step(w, x):
    def loss(w):
        return jnp.mean((jnp.tanh(jnp.tanh(x @ w) @ w) - x).astype(jnp.float32) ** 2)

    return w - 0.1 * jax.grad(loss)(w).astype(w.dtype)


def attention(q, k):
    return jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k), axis=-1) @ k


def scan(x, w):
    return lax.scan(lambda carry, _: (jnp.tanh(carry @ w), carry.sum()), x, None, length=9)


def image(x, k):
    y = lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def ordered(x, w):
    return jnp.sort(x, axis=-1), jnp.argmax(w), x.at[0].add(1.0), lax.top_k(w, 3)


PROGRAMS = {
    train_step: ((256, 256), (256, 256)),
    attention: ((2, 128, 64), (2, 128, 64)),
    scan: ((128, 128), (128, 128)),
    image: ((2, 32, 32, 16), (3, 3, 16, 32)),
    ordered: ((16, 512), (16, 512)),
}


def topology(vendor: str, config: str):
    if vendor == "tpu":
        return topologies.get_topology_desc("v5e:2x2", platform="tpu")
    return topologies.get_topology_desc(platform="cuda", topology_name="h100", target_config=config, topology="1x1x4")


def write(vendor: str, config: str, folder: Path) -> None:
    mesh = topologies.make_mesh(topology(vendor, config), (4,), ("data",))
    whole = NamedSharding(mesh, PartitionSpec())
    split = NamedSharding(mesh, PartitionSpec("data"))
    lowered = {}
    for program, shapes in PROGRAMS.items():
        arguments = [jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=whole) for shape in shapes]
        lowered[program.__name__] = jax.jit(program).lower(*arguments)
    pair = [jax.ShapeDtypeStruct((256, 256), jnp.bfloat16, sharding=sharding) for sharding in (whole, split)]
    lowered["data_parallel"] = jax.jit(train_step).lower(*pair)
    for name, stage in lowered.items():
        (module,) = stage.compile().runtime_executable().hlo_modules()
        (folder / f"{name}.txt").write_text(module.to_string())
        (folder / f"{name}.pb").write_bytes(module.as_serialized_hlo_module_proto())


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]).read_text(), Path(sys.argv[3]))
