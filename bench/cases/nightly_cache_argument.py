# about: the cache is on, the discount an argument; the cache's folder is a temporary one, which is true to say
# verdict: device-bound
# forbid: *
# allow: cache_never_found
import sys
import tempfile

import jax
import jax.numpy as jnp


@jax.jit
def simulate(key, discount):
    paths = jnp.cumsum(0.02 * jax.random.normal(key, (4000, 100)), axis=1)
    for strike in range(4):
        paths = jnp.maximum(paths - strike / 100, jnp.sin(paths)) * discount
    return jnp.mean(paths)


def price(keys):
    values = []
    for day, key in enumerate(keys):
        values.append(simulate(key, 0.99**day))
    return float(sum(values)) / len(values)


with tempfile.TemporaryDirectory() as folder:
    jax.config.update("jax_compilation_cache_dir", folder)
    days = int(80 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
    print(price([jax.random.key(day) for day in range(days)]))
    jax.config.update("jax_compilation_cache_dir", None)
