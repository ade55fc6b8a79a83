"""Data-parallel training on several processes, one of which can be made late, to try `jaxprof script -n` on.

    jaxprof script -n 4 examples/data_parallel.py --slow 2
    jaxprof explain data_parallel.jaxprof.d

Each process has a shard of the data; gradients are averaged over all of them in each step, so that every process waits
for the slowest one. `--slow 2` makes process 2 late, by `--how`: its disk is slow (`data`, the default), it writes a
log in each step (`host`), or its batches vary in size (`recompile`). Without `--slow` nobody is late.
"""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

WIDTH, ROWS = 256, 64
LATE_SECONDS = 0.02


class SlowDisk:
    """The shard of one process, a batch at a time."""

    def __init__(self, index: int, seconds: float) -> None:
        self.batches = np.random.default_rng(index)
        self.seconds = seconds

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """A batch: inputs, and what is to be learned of them."""
        time.sleep(self.seconds)
        inputs = self.batches.normal(size=(ROWS, WIDTH)).astype(np.float32)
        return inputs, np.tanh(inputs.sum(axis=1, keepdims=True))


def write_log(step: int, seconds: float) -> str:
    """A log that takes its time."""
    until = time.perf_counter() + seconds
    text = ""
    while time.perf_counter() < until:
        text = f"step {step}\n" * 100
    return text


def loss(weights: dict[str, jax.Array], inputs: jax.Array, targets: jax.Array) -> jax.Array:
    """Mean squared error of two layers."""
    return jnp.mean((jnp.tanh(inputs @ weights["in"]) @ weights["out"] - targets) ** 2)


def train_step(
    weights: dict[str, jax.Array], inputs: jax.Array, targets: jax.Array
) -> tuple[dict[str, jax.Array], jax.Array]:
    """One step on one shard, with the gradients of all of them."""
    value, gradients = jax.value_and_grad(loss)(weights, inputs, targets)
    gradients = jax.lax.pmean(gradients, "data")
    return jax.tree.map(lambda weight, by: weight - 0.01 * by, weights, gradients), jax.lax.pmean(value, "data")


@jax.jit
def spread(batch: jax.Array) -> jax.Array:
    """How far the values of a batch are apart: compiled again for each size of a batch."""
    return jnp.std(batch)


def main() -> None:
    """Train, and print the loss from the first process."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--slow", type=int, metavar="INDEX", help="the process that is late; without, nobody is")
    parser.add_argument("--how", choices=("data", "host", "recompile"), default="data")
    options = parser.parse_args()

    jax.distributed.initialize()
    index = jax.process_index()
    late = options.how if index == options.slow else ""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    shards = NamedSharding(mesh, P("data"))
    whole = NamedSharding(mesh, P())
    specs = (P(), P("data"), P("data"))
    step = jax.jit(jax.shard_map(train_step, mesh=mesh, in_specs=specs, out_specs=(P(), P())))
    seed = np.random.default_rng(0)
    weights = {
        "in": jax.device_put(seed.normal(size=(WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5, whole),
        "out": jax.device_put(seed.normal(size=(WIDTH, 1)).astype(np.float32) / WIDTH**0.5, whole),
    }
    disk = SlowDisk(index, LATE_SECONDS if late == "data" else 0.0)
    value = jnp.float32(0)
    for number in range(options.steps):
        inputs, targets = disk.read()
        if late == "recompile" and number % 10 == 0:
            spread(inputs[: 8 + number // 10])
        batch = jax.make_array_from_process_local_data(shards, inputs)
        goal = jax.make_array_from_process_local_data(shards, targets)
        weights, value = step(weights, batch, goal)
        value.block_until_ready()
        if late == "host":
            write_log(number, LATE_SECONDS)
    multihost_utils.sync_global_devices("trained")
    if index == 0:
        print(f"loss after {options.steps} steps: {float(value):.4f}")


if __name__ == "__main__":
    main()
