# about: a pool of one thread prepares the next batch, and its future is waited for in each step
# how: script
# expect: data_waits
# set: holdout
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np


def load(index):
    rng = np.random.default_rng(index)
    text = " ".join(str(n) for n in rng.integers(0, 5000, 12_000))
    counts = np.zeros(5000, np.float32)
    for word in text.split():
        counts[int(word)] += 1.0
    return counts


@jax.jit
def fold_in(topics, counts):
    share = jax.nn.softmax(topics @ counts)
    return topics + 1e-4 * jnp.outer(share, counts)


topics = jax.random.normal(jax.random.key(0), (20, 5000)) / 70
with ThreadPoolExecutor(1) as pool:
    coming = pool.submit(load, 0)
    for step in range(1, 400):
        counts = coming.result()
        coming = pool.submit(load, step)
        topics = fold_in(topics, counts)
print(topics.std())
