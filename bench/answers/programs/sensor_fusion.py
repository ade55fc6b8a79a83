# about: readings come with another dtype each time (uint8, int16, int32, float16, ...), and each is compiled
# how: script
# expect: arguments_vary
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def fuse(belief, reading):
    reading = reading.astype(jnp.float32)
    gain = 1 / (1 + jnp.exp(-reading.std()))
    spectrum = jnp.abs(jnp.fft.rfft(reading))
    smooth = jnp.convolve(reading, jnp.ones(16) / 16, mode="same")
    return belief + gain * (jnp.sort(smooth) - belief) + spectrum.mean() * 1e-6


KINDS = [np.uint8, np.int16, np.uint16, np.int32, np.float16, np.float32, np.uint32, np.int8]
rng = np.random.default_rng(0)
belief = jnp.zeros(4096)
for tick in range(80):
    kind = KINDS[tick % len(KINDS)]
    reading = jnp.asarray((100 * rng.random(4096)).astype(kind))
    belief = fuse(belief, reading)
print(belief[:3])
