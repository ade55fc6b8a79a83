# about: the table is put on the device once; each call scores all of it
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def nearest(table, query):
    scores = table[query] @ table.T
    return jnp.argmax(scores, axis=1)


class Index:
    def __init__(self, rows):
        rng = np.random.default_rng(0)
        self.table = jax.device_put(rng.standard_normal((rows, 256), dtype=np.float32))
        self.queries = [jnp.asarray(rng.integers(0, rows, 64)) for _ in range(16)]

    def look_up(self, times):
        hit = 0
        for number in range(times):
            hit = nearest(self.table, self.queries[number % 16])
        return hit


times = int(100 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
print(Index(16_384).look_up(times))
