# about: a matrix is donated to a step whose result has another shape, so that the donation does nothing
# verdict: device-bound
# expect: unused_donation
# forbid: op_by_op_loop, host_sync, data_waits, many_tiny_jits, host_work, dispatch_bound
# lines: unused_donation@cause
# mended: power_iteration_used
import sys
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, donate_argnums=(0, 1))  # <- cause
def estimate(matrix, vector):  # <- cause
    for _ in range(10):
        vector = matrix @ vector
        vector = vector / jnp.linalg.norm(vector)
    return vector, vector @ (matrix @ vector)


@partial(jax.jit, static_argnums=1)
def make(seed, size):
    return jax.random.normal(jax.random.key(seed), (size, size)) / size


vector = jnp.ones(1024)
for seed in range(int(60 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    vector, value = estimate(make(seed, 1024), vector)  # <- cause
print(value)
