# about: gc.collect() in every pass takes longer than the jitted step
# verdict: host-bound
# expect: host_work
# forbid: op_by_op_loop, many_tiny_jits, host_sync, data_waits, dispatch_bound
# lines: host_work@cause
# mended: galaxy_collected_once
import gc
import sys

import jax
import jax.numpy as jnp


@jax.jit
def move(position, velocity):
    offset = position[:, None, :] - position[None, :, :]
    distance = jnp.sum(offset**2, -1) + 0.1
    velocity = velocity - 0.01 * jnp.sum(offset / distance[..., None] ** 1.5, 1)
    return position + 0.01 * velocity, velocity


class Simulation:
    def __init__(self, bodies):
        key = jax.random.key(3)
        self.position = jax.random.normal(key, (bodies, 3))
        self.velocity = jnp.zeros((bodies, 3))
        self.log = [{"step": step, "time": 0.01 * step, "notes": []} for step in range(60_000)]

    def run(self, steps):
        for _ in range(steps):
            self.position, self.velocity = move(self.position, self.velocity)
            gc.collect()  # <- cause


simulation = Simulation(24)
simulation.run(int(30 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))
print(simulation.position[0])
