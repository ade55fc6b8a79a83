# about: the weights come from an .npz file and stay NumPy arrays, which each request copies to the device
# how: script
# expect: numpy_argument | implicit_transfers
import os
import tempfile

import jax
import jax.numpy as jnp
import numpy as np


def train_offline(path):
    rng = np.random.default_rng(7)
    np.savez(
        path,
        items=rng.standard_normal((120_001, 63)).astype(np.float32),
        users=rng.standard_normal((50_001, 63)).astype(np.float32),
    )


@jax.jit
def recommend(weights, user, candidates):
    vector = weights["users"][user]
    scores = weights["items"][candidates] @ vector
    return jax.lax.top_k(scores, 10)


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.npz")
    train_offline(path)
    with np.load(path) as archive:
        weights = dict(archive)

candidates = jnp.arange(500)
for request in range(150):
    scores, items = recommend(weights, request, candidates + request)
print(items)
