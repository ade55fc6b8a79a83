# about: the same with one padded shape and a mask, and many steps
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp
import numpy as np

MOST = 4096


@jax.jit
def fit(weights, points, mask):
    def energy(weights):
        hidden = points
        for w in weights:
            hidden = jnp.tanh(hidden @ w)
        return jnp.sum(jnp.sum((hidden - points) ** 2, axis=1) * mask) / jnp.sum(mask)

    value, gradient = jax.value_and_grad(energy)(weights)
    return [w - 0.1 * g for w, g in zip(weights, gradient)], value


def padded(count):
    rng = np.random.default_rng(0)
    for number in range(count):
        size = 3000 + 7 * number
        points = np.zeros((MOST, 64), np.float32)
        points[:size] = rng.standard_normal((size, 64), dtype=np.float32)
        yield jax.device_put(points), jax.device_put((np.arange(MOST) < size).astype(np.float32))


epochs = int(40 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
weights = [jnp.eye(64) for _ in range(3)]
data = list(padded(8))
for epoch in range(epochs):
    for points, mask in data:
        weights, value = fit(weights, points, mask)
print(value)
