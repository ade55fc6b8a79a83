# about: all parameters (16 MB) are fetched, copied and averaged twice with NumPy after each cheap step
# verdict: host-bound | copy-bound
# expect: repeated_fetch | host_work
# forbid: op_by_op_loop, many_tiny_jits, data_waits, dispatch_bound, arrays_grow
# lines: repeated_fetch@cause, host_work@cause
# mended: epoch_snapshots_on_device
import sys

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(params, number):
    return {"w": params["w"].at[0].add(1e-3 * number), "b": params["b"] * 0.99}


def average(mean, params, rate):
    fetched = jax.device_get(params)  # <- cause
    return {name: (1 - rate) * mean[name] + rate * np.array(value) for name, value in fetched.items()}  # <- cause


params = {"w": jnp.ones((1024, 4096)), "b": jnp.ones(4096)}
mean = slow = jax.device_get(params)
for number in range(int(60 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    params = step(params, number)
    mean = average(mean, params, 0.01)  # <- cause
    slow = average(slow, params, 0.001)  # <- cause
print(mean["w"][0, :3], slow["w"][0, :3])
