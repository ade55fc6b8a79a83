# about: a benchmark of a function that closes over its input, so that XLA computes it while compiling
# how: run @:probe --arg f32[] --budget 1
# expect: folded_constants | dead_code
# allow: large_constant
import jax.numpy as jnp
import numpy as np

SIGNAL = np.linspace(0, 1, 60_000, dtype=np.float32)


def probe(scale):
    wave = jnp.asarray(SIGNAL)
    for harmonic in range(1, 5):
        wave = wave + jnp.sin(harmonic * wave) / harmonic
    return scale * jnp.sum(wave**2)
