# about: every state of 1 MB is kept in a list, which grows to the end
# verdict: device-bound
# expect: arrays_grow
# forbid: op_by_op_loop, host_sync, data_waits, many_tiny_jits, dispatch_bound, host_work
# mended: trajectory_log_last
import sys

import jax
import jax.numpy as jnp


@jax.jit
def diffuse(u):
    for _ in range(4):
        u = u + 0.1 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u)
    return u


class Recorder:
    def __init__(self):
        self.states = []

    def run(self, u, steps):
        for _ in range(steps):
            u = diffuse(u)
            self.states.append(u)
        return u


recorder = Recorder()
u = recorder.run(jnp.eye(512), int(400 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))
print(len(recorder.states), u[0, 0])
