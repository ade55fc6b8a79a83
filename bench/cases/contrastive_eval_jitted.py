# about: two loops, one of training and one of evaluation, both jitted and both the device's
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


def embed(w, x):
    return jnp.tanh(x @ w)


@jax.jit
def train_step(w, x):
    def loss(w):
        z = embed(w, x)
        return jnp.mean(jax.nn.logsumexp(z @ z.T, axis=1)) - jnp.mean(z**2)

    return w - 0.01 * jax.grad(loss)(w)


@jax.jit
def evaluate(w, x):
    z = embed(w, x)
    z = z / jnp.linalg.norm(z, axis=1, keepdims=True)
    return jnp.mean(jnp.max(z @ z.T - 2 * jnp.eye(len(z)), axis=1))


x = jnp.sin(jnp.arange(512.0 * 256)).reshape(512, 256)
w = jnp.eye(256)
epochs = int(12 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
for epoch in range(epochs):
    for _ in range(10):
        w = train_step(w, x)
    for _ in range(5):
        score = evaluate(w, x)
print(score)
