# about: each step copies the next tiles, 16 MB of float32, with jnp.asarray; the whole set is 48 MB
# verdict: copy-bound
# expect: batch_copies
# forbid: *
# lines: batch_copies@cause
# mended: satellite_tiles_indexed
import sys

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def follow(mean, tiles):
    return 0.99 * mean + 0.01 * tiles[:, 0].mean()


def scan(archive, count, size=256):
    mean = jnp.zeros(())
    for number in range(count):
        start = number % 3 * size
        tiles = jnp.asarray(archive[start : start + size])  # <- cause
        mean = follow(mean, tiles)
    return mean


archive = np.random.default_rng(0).standard_normal((768, 16_385), dtype=np.float32)
print(scan(archive, int(400 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
