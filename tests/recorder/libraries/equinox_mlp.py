"""An equinox MLP: filter_jit and filter_value_and_grad, an optax optimizer; ends with an exit code of its own."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

optimizer = optax.adam(1e-2)


@eqx.filter_value_and_grad
def loss_of(model, x, y):
    return ((jax.vmap(model)(x) - y) ** 2).mean()


@eqx.filter_jit
def make_step(model, state, x, y):
    loss, gradients = loss_of(model, x, y)
    updates, state = optimizer.update(gradients, state, model)
    return eqx.apply_updates(model, updates), state, loss


def main():
    numbers = np.random.default_rng(0)
    model = eqx.nn.MLP(4, 1, width_size=8, depth=1, key=jax.random.key(0))
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    for size in (8, 8, 5):
        x = jnp.asarray(numbers.normal(size=(size, 4)), jnp.float32)
        model, state, loss = make_step(model, state, x, x[:, :1])
        print(f"{size}: {loss:.3f}", file=sys.stderr)
    sys.exit(4)


main()
