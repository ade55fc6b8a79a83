# about: one jitted step of microseconds, called a hundred thousand times from Python
# verdict: dispatch-bound
# expect: dispatch_bound
# forbid: op_by_op_loop, host_sync, many_tiny_jits, data_waits, host_work, arrays_grow
# lines: dispatch_bound@cause
# mended: pendulum_scan
import sys

import jax
import jax.numpy as jnp

steps = int(250_000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))


@jax.jit
def step(state):
    angle, speed = state
    speed = speed - 0.01 * jnp.sin(angle)
    return angle + 0.01 * speed, speed


state = (jnp.float32(1.0), jnp.float32(0.0))
for _ in range(steps):  # <- cause
    state = step(state)  # <- cause
print(state)
