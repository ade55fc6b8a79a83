# about: a comprehension scores each prefix of a series, and each prefix has a shape of its own
# how: script
# expect: varying_shapes
# set: holdout
import jax
import jax.numpy as jnp
import numpy as np

series = np.cumsum(np.random.default_rng(2).standard_normal(64)).astype(np.float32)


class Detector:
    def __init__(self, width):
        self.kernel = jnp.hanning(width)

    def __call__(self, past):
        smooth = jnp.convolve(past, self.kernel, mode="same")
        return jnp.abs(past - smooth).max() / (past.std() + 1e-6)


detect = jax.jit(Detector(5).__call__)
scores = [detect(series[:end]) for end in range(8, 48)]
print(max(map(float, scores)))
