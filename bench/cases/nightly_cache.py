# about: the persistent cache is on, yet the jitted function is made anew with another constant for each day, and misses
# verdict: compile-bound
# expect: closure_varies | recompile_in_loop
# forbid: op_by_op_loop, many_tiny_jits, varying_shapes, host_sync, data_waits, host_work
# mended: nightly_cache_argument
import sys
import tempfile

import jax
import jax.numpy as jnp


def price(day):
    discount = 0.99**day

    @jax.jit
    def simulate(key):
        paths = jnp.cumsum(0.02 * jax.random.normal(key, (200, 30)), axis=1)
        for strike in range(6):
            paths = jnp.maximum(jnp.sort(paths, axis=0) - strike / 100, jnp.sin(paths)) * discount
        return jnp.mean(paths)

    return simulate(jax.random.key(day))  # <- cause


with tempfile.TemporaryDirectory() as folder:
    jax.config.update("jax_compilation_cache_dir", folder)
    days = int(4 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
    print(sum(float(price(day)) for day in range(days)) / days)
    jax.config.update("jax_compilation_cache_dir", None)
