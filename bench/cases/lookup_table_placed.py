# about: the table is put on the device once, and in each step the next rows, which are new
# verdict: -|copy-bound|data-bound|device-bound|dispatch-bound|host-bound
# forbid: unchanging_transfer, implicit_transfers
import sys

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(weights, table, picked, scales):
    rows = table[picked] * scales
    return weights - 1e-3 * jax.grad(lambda weights: jnp.mean((rows @ weights) ** 2))(weights)


rng = np.random.default_rng(0)
table = jax.device_put(rng.random((40_000, 128)))
weights = jnp.ones((128, 16)) / 128
for number in range(int(100 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    picked = rng.integers(0, len(table), 64)
    scales = rng.random((64, 1), dtype=np.float32)
    weights = step(weights, table, jax.device_put(picked), jax.device_put(scales))
print(weights.sum())
