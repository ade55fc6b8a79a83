# about: nothing; a set-up loop makes members operation by operation before the hot loop
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


def members(count, width):
    made = []
    for number in range(count):
        made.append(jnp.eye(width) * (0.1 + number / 100) + 0.01)
    return jnp.stack(made)


@jax.jit
def improve(weights, x):
    def loss(w):
        return jnp.mean((jnp.tanh(x @ w) - x) ** 2)

    return weights - 0.1 * jax.vmap(jax.grad(loss))(weights)


weights = members(20, 128)
x = jnp.sin(jnp.arange(1024.0 * 128)).reshape(1024, 128)
for _ in range(int(40 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    weights = improve(weights, x)
print(weights[0, 0, :3])
