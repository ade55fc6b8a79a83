# about: all tiles are put on the device once, and the compiled function takes those of the step
# verdict: -|device-bound|dispatch-bound
# forbid: *
# allow: dispatch_bound
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


@partial(jax.jit, static_argnames="size")
def follow(mean, archive, start, size):
    return 0.99 * mean + 0.01 * jax.lax.dynamic_slice_in_dim(archive, start, size)[:, 0].mean()


def scan(archive, count, size=256):
    mean = jnp.zeros(())
    for number in range(count):
        mean = follow(mean, archive, number % 3 * size, size)
    return mean


archive = np.random.default_rng(0).standard_normal((768, 16_385), dtype=np.float32)
print(scan(jax.device_put(archive), int(400 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
