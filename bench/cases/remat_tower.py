# about: nothing; jax.checkpoint, scan and grad in a step that keeps the device busy
# verdict: device-bound
# forbid: *
# advice-not: lax\.scan
import sys

import jax
import jax.numpy as jnp


@jax.checkpoint
def block(x, w):
    return jnp.tanh(x @ w) + x, None


@jax.jit
def step(weights, x):
    def loss(weights):
        return jnp.mean(jax.lax.scan(block, x, weights)[0] ** 2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 1e-3 * gradient, value


def train(weights, x, steps):
    for step_number in range(steps):
        weights, value = step(weights, x)
        if step_number % 20 == 19:
            print(step_number, value)
    return weights


train(
    jnp.stack([0.01 * jnp.eye(256)] * 8), jnp.ones((256, 256)), int(40 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
)
