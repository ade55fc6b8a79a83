# about: no collection in the loop, more bodies
# verdict: device-bound
# forbid: *
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

    def run(self, steps):
        for _ in range(steps):
            self.position, self.velocity = move(self.position, self.velocity)
        gc.collect()


simulation = Simulation(512)
simulation.run(int(150 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))
print(simulation.position[0])
