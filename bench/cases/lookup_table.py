# about: a table that never changes is put on the device in each step
# verdict: copy-bound
# expect: unchanging_transfer
# forbid: *
# lines: unchanging_transfer@cause
# mended: lookup_table_placed
import sys

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(weights, table, picked):
    rows = table[picked]
    return weights - 1e-3 * jax.grad(lambda weights: jnp.mean((rows @ weights) ** 2))(weights)


rng = np.random.default_rng(0)
table = rng.random((40_000, 128))
weights = jnp.ones((128, 16)) / 128
for _ in range(int(100 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    picked = rng.integers(0, len(table), 64)
    weights = step(weights, jax.device_put(table), picked)  # <- cause
print(weights.sum())
