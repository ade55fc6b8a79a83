# about: the tracks are put on the device once, and one jitted function mixes them
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def add(mixed, track):
    return 0.9 * mixed + jnp.tanh(track) * jnp.sin(mixed)


def mix(tracks, passes):
    mixed = jnp.zeros(tracks[0].shape, jnp.float32)
    for number in range(passes):
        mixed = add(mixed, tracks[number % len(tracks)])
    return mixed


rng = np.random.default_rng(0)
tracks = [jax.device_put(rng.standard_normal((4, 1_000_003), dtype=np.float32)) for _ in range(3)]
print(mix(tracks, int(160 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))[0, :3])
