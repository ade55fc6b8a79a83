# about: the table is on the device once, and an argument
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def nearest(table, query):
    return jnp.argmin(jnp.abs(table - query).sum(axis=1))


def main():
    table = jax.device_put(np.random.default_rng(0).standard_normal((4096, 2048), dtype=np.float32))
    query = jnp.ones(2048)
    for number in range(int(300 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
        best = nearest(table, query)
    print(best)


main()
