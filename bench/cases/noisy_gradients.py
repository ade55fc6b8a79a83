# about: NumPy draws a million random numbers in each pass, for a cheap jitted step
# verdict: data-bound | host-bound
# expect: data_waits | host_work
# forbid: op_by_op_loop, many_tiny_jits, host_sync, dispatch_bound, repeated_fetch
# lines: data_waits@cause, host_work@cause
# mended: noisy_gradients_jax
import sys

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def update(w, noise):
    return w - 0.01 * (w + noise)


rng = np.random.default_rng(0)
w = jnp.ones(16)
for step in range(int(70 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    noise = rng.normal(0.0, 1.0, (60_000, 16)).mean(0)  # <- cause
    w = update(w, noise)
print(w[:3])
