# about: the numbers are drawn in the jitted step
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


@jax.jit
def update(w, key):
    noise = jax.random.normal(key, (60_000, 16)).mean(0)
    return w - 0.01 * (w + noise)


w = jnp.ones(16)
keys = jax.random.split(jax.random.key(0), 8)
chosen = [keys[number] for number in range(8)]
for step in range(int(80 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    w = update(w, chosen[step % 8])
print(w[:3])
