"""A regression in flax.nnx: nnx.jit, nnx.value_and_grad and nnx.Optimizer; two batch sizes."""

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Regressor(nnx.Module):
    def __init__(self, rngs):
        self.hidden = nnx.Linear(4, 8, rngs=rngs)
        self.out = nnx.Linear(8, 1, rngs=rngs)

    def __call__(self, x):
        return self.out(nnx.tanh(self.hidden(x)))


@nnx.jit
def train_step(model, optimizer, x, y):
    def loss_of(model):
        return ((model(x) - y) ** 2).mean()

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, gradients)
    return loss


def main():
    numbers = np.random.default_rng(0)
    model = Regressor(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(1e-2), wrt=nnx.Param)
    for size in (8, 8, 5):
        x = jnp.asarray(numbers.normal(size=(size, 4)), jnp.float32)
        print(f"{size}: {train_step(model, optimizer, x, x[:, :1]):.3f}")


main()
