# about: large steps on batches that are indexed on the device; a loss now and then
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp

steps = int(40 * float(sys.argv[1] if len(sys.argv) > 1 else 1))


@jax.jit
def init(key):
    return [jax.random.normal(part, (512, 512)) * 0.02 for part in jax.random.split(key, 6)]


@jax.jit
def train(weights, x):
    def loss(weights):
        h = x
        for w in weights:
            h = jnp.tanh(h @ w)
        return jnp.mean(h**2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return [w - 0.1 * g for w, g in zip(weights, gradient)], value


weights = init(jax.random.key(0))
batches = jax.random.normal(jax.random.key(1), (8, 2048, 512))
for i in range(steps):
    weights, value = train(weights, batches[i % 8])
    if i % 20 == 0:
        print(i, value)
