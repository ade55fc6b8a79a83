# about: no frame sleeps, and each has a larger flock
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


@jax.jit
def fly(places, headings):
    mean = headings.mean(axis=0)
    headings = 0.95 * headings + 0.05 * mean
    return places + 0.01 * jnp.tanh(headings), headings


def run(frames):
    places = jax.random.uniform(jax.random.key(0), (1_000_000, 2))
    headings = jax.random.normal(jax.random.key(1), (1_000_000, 2))
    for _ in range(frames):
        places, headings = fly(places, headings)
    return places


frames = int(150 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
print(run(frames).mean())
