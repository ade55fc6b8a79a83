# about: an environment in NumPy asks a tiny jitted policy at each step; most of the time is the calls' and its float()
# verdict: dispatch-bound | host-bound | device-bound
# expect: dispatch_bound | host_sync
# forbid: op_by_op_loop, many_tiny_jits, repeated_fetch, arrays_grow
# lines: dispatch_bound@cause, host_sync@cause
# mended: grid_world_scan
import sys

import jax
import jax.numpy as jnp


@jax.jit
def policy(weights, x, y):
    return jnp.tanh(weights[0] * x + weights[1] * y)


class Walker:
    def __init__(self):
        self.x = self.y = 0.0

    def step(self, action):
        self.x += action * 0.1
        self.y = 0.9 * self.y + self.x


def episode(weights, steps):
    walker = Walker()
    for _ in range(steps):
        action = policy(weights, walker.x, walker.y)  # <- cause
        walker.step(float(action))  # <- cause
    return walker.x


weights = jnp.array([-0.5, 0.1])
print(episode(weights, int(80_000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
