# about: functools.reduce instead of a loop, over a generator that shuffles and augments with NumPy for longer than a step
# how: script
# expect: data_waits
# set: holdout
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(1)
CORPUS = rng.standard_normal((4000, 256)).astype(np.float32)


def minibatches(count):
    for _ in range(count):
        rows = rng.permutation(len(CORPUS))[:512]
        batch = CORPUS[rows] + 0.1 * rng.standard_normal((512, 256)).astype(np.float32)
        yield np.sort(batch, axis=1)


@jax.jit
def update(w, batch):
    return w + 1e-4 * (batch.T @ (batch @ w) - w)


w = reduce(update, minibatches(250), jnp.eye(256, 8, dtype=jnp.float32))
print(w.sum())
