# about: only what has the shape of a result is donated
# verdict: device-bound
# forbid: *
import sys
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, donate_argnums=1)
def estimate(matrix, vector):
    for _ in range(10):
        vector = matrix @ vector
        vector = vector / jnp.linalg.norm(vector)
    return vector, vector @ (matrix @ vector)


@partial(jax.jit, static_argnums=1)
def make(seed, size):
    return jax.random.normal(jax.random.key(seed), (size, size)) / size


vector = jnp.ones(1024)
for seed in range(int(60 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    vector, value = estimate(make(seed, 1024), vector)
print(value)
