# about: all pairs in one call
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


def similarity(a, b):
    return jnp.dot(a, b) / jnp.sqrt(jnp.dot(a, a) * jnp.dot(b, b))


@jax.jit
def best_matches(rows):
    table = jax.vmap(lambda a: jax.vmap(lambda b: similarity(a, b))(rows))(rows)
    return jnp.max(table - 2 * jnp.eye(len(rows)), axis=1)


repeats = int(60 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
rows = jnp.sin(jnp.arange(2000.0 * 128).reshape(2000, 128))
for _ in range(repeats):
    best = best_matches(rows)
print(best[:3])
