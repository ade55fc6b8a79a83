# about: a NumPy table of 8 MB is closed over by several jitted functions and is a constant of each
# verdict: - | compile-bound | device-bound
# expect: captured_constants
# forbid: op_by_op_loop, host_sync, data_waits, many_tiny_jits, host_work, numpy_argument
# mended: spectrum_server_argument
import sys

import jax
import jax.numpy as jnp
import numpy as np

TABLE = np.random.default_rng(0).standard_normal((1024, 2048), dtype=np.float32)


def answer(power):
    @jax.jit
    def nearest(query):
        distance = jnp.abs(TABLE - query) ** power
        return jnp.argmin(distance.sum(axis=1))

    return nearest


@jax.jit
def project(query):
    return jnp.linalg.norm(TABLE @ query)


def main():
    query = jnp.ones(2048)
    servers = [answer(1), answer(2)]
    for number in range(int(250 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
        best = servers[number % 2](query)
    print(best, project(query))


main()
