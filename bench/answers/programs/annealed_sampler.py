# about: the temperature of the step is in static_argnames, and takes another value each time
# how: script
# expect: static_argument_varies
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnames=("temperature",))
def sweep(spins, key, *, temperature):
    for parity in (0, 1):
        key, own = jax.random.split(key)
        around = sum(jnp.roll(spins, shift, axis) for shift in (1, -1) for axis in (0, 1))
        flips = jax.random.uniform(own, spins.shape) < jnp.exp(-2 * spins * around / temperature)
        board = (jnp.indices(spins.shape).sum(0) % 2) == parity
        spins = jnp.where(flips & board, -spins, spins)
    return spins


spins = jnp.ones((128, 128))
temperature = 4.0
key = jax.random.key(0)
for _ in range(25):
    key, own = jax.random.split(key)
    spins = sweep(spins, own, temperature=temperature)
    temperature *= 0.95
print(spins.mean())
