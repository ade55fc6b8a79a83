# about: the layers are scanned
# verdict: - | device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


@jax.jit
def gradient(weights, x):
    def layer(y, w):
        return y + jnp.tanh(y * w) / len(weights), None

    def loss(weights):
        return jnp.mean(jax.lax.scan(layer, x, weights)[0] ** 2)

    return jax.grad(loss)(weights)


layers = int(700 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
weights = jnp.ones((layers, 16))
print(gradient(weights, jnp.ones((2048, 16)))[0, :3])
