# about: one batch size, larger layers
# verdict: device-bound
# forbid: *
# needs: flax
import sys

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


class Model(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([nnx.Linear(512, 512, rngs=rngs) for _ in range(2)])

    def __call__(self, x):
        for layer in self.layers:
            x = x + nnx.tanh(layer(x))
        return x.sum(-1)


@nnx.jit
def train_step(model, x, y):
    def loss_fn(model):
        return jnp.mean((model(x) - y) ** 2)

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    params = nnx.state(model, nnx.Param)
    nnx.update(model, jax.tree.map(lambda p, g: p - 1e-5 * g, params, grads))
    return loss


def main():
    model = Model(nnx.Rngs(0))
    x = jax.device_put(np.random.default_rng(0).standard_normal((1024, 512), dtype=np.float32))
    y = jnp.zeros(1024)
    for week in range(int(70 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
        loss = train_step(model, x, y)
    print(loss)


main()
