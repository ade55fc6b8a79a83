# about: nothing; the loop dispatches faster than the device works, and the one print after it waits for what is left
# verdict: device-bound | -
# forbid: *
import sys

import jax
import jax.numpy as jnp


@jax.jit
def sweep(key, spins):
    def half(spins, key):
        around = jnp.roll(spins, 1, 0) + jnp.roll(spins, -1, 0) + jnp.roll(spins, 1, 1) + jnp.roll(spins, -1, 1)
        flip = jax.random.uniform(key, spins.shape) < jnp.exp(-0.88 * spins * around)
        return jnp.where(flip, -spins, spins), None

    key, own = jax.random.split(key)
    return key, jax.lax.scan(half, spins, jax.random.split(own, 10))[0]


key, spins = jax.random.key(0), jnp.ones((512, 512))
for _ in range(int(25 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    key, spins = sweep(key, spins)
print("magnetisation", spins.mean())
