# about: products of large matrices, one after another outside any jit; the device computes for milliseconds in each
# verdict: device-bound
# forbid: op_by_op_loop, dispatch_bound, many_tiny_jits, host_work
import sys

import jax.numpy as jnp
import numpy as np

PASSES = int(60 * float(sys.argv[1]))

random = np.random.default_rng(0)
matrix = jnp.asarray(random.standard_normal((1200, 1200), dtype=np.float32) / np.sqrt(1200))
power = matrix
for _ in range(PASSES):
    power = power @ matrix
    power = power * 0.99
print(float(jnp.abs(power).max()))
