"""A small network trained on made-up batches: one jitted step, the loss read now and then."""

import jax
import jax.numpy as jnp
import numpy as np


def loss(weights, x, y):
    hidden = jnp.tanh(x @ weights["in"])
    return jnp.mean((hidden @ weights["out"] - y) ** 2)


@jax.jit
def step(weights, x, y):
    value, gradient = jax.value_and_grad(loss)(weights, x, y)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient), value


def batches(count):
    random = np.random.default_rng(0)
    for _ in range(count):
        x = random.standard_normal((256, 256), dtype=np.float32)
        yield x, x[:, :1] * 0.5


weights = {"in": jnp.full((256, 256), 0.01), "out": jnp.full((256, 1), 0.01)}
for number, (x, y) in enumerate(batches(2500)):
    weights, value = step(weights, x, y)
    if number % 100 == 0:
        print(number, float(value))
