# about: the strength is an argument of one jitted function
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


@jax.jit
def update(w, x, strength):
    def loss(w):
        hidden = x
        for _ in range(5):
            hidden = jnp.tanh(hidden @ w)
        return jnp.mean((hidden - x) ** 2) + strength * jnp.sum(jnp.abs(w))

    return w - 0.1 * jax.grad(loss)(w)


def train(w, x, strength, steps=20):
    for _ in range(steps):
        w = update(w, x, strength)
    return w


x = jnp.linspace(-1.0, 1.0, 256 * 256).reshape(256, 256)
start = jnp.eye(256)
for number in range(int(14 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    w = train(start, x, 1e-4 * number)
print(w[0, :2])
