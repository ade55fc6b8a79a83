# about: a generator inflates and augments each patch in the main thread, which takes longer than the step
# how: script
# expect: data_waits
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
SHARDS = [zlib.compress((rng.random((32, 48, 48, 3)) * 8).astype(np.uint8).tobytes(), 6) for _ in range(6)]


def patches(epochs):
    for _ in range(epochs):
        for shard in SHARDS:
            tile = np.frombuffer(zlib.decompress(shard), np.uint8).reshape(32, 48, 48, 3)
            tile = np.rot90(tile, rng.integers(4), axes=(1, 2)).astype(np.float32) / 8
            tile = (tile - tile.mean(axis=(1, 2), keepdims=True)) / (tile.std(axis=(1, 2), keepdims=True) + 1e-6)
            yield np.ascontiguousarray(tile), rng.integers(0, 4, 32)


def forward(params, x):
    x = jax.nn.relu(
        jax.lax.conv_general_dilated(x, params["k"], (4, 4), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    )
    return x.mean((1, 2)) @ params["w"]


opt = optax.sgd(0.1)


@jax.jit
def step(params, state, x, y):
    def loss(p):
        return optax.softmax_cross_entropy_with_integer_labels(forward(p, x), y).mean()

    updates, state = opt.update(jax.grad(loss)(params), state)
    return optax.apply_updates(params, updates), state


params = {"k": jnp.full((3, 3, 3, 8), 0.1, jnp.float32), "w": jnp.zeros((8, 4))}
state = opt.init(params)
for x, y in patches(60):
    params, state = step(params, state, x, y)
print(params["w"].sum())
