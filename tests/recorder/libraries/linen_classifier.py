"""A classifier in flax.linen, trained with optax through a TrainState; the last batch is smaller."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState


class Classifier(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(nn.relu(nn.Dense(16)(x)))


@jax.jit
def train_step(state, x, labels):
    def loss_of(params):
        logits = state.apply_fn({"params": params}, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, gradients = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=gradients), loss


def main():
    numbers = np.random.default_rng(0)
    x = jnp.asarray(numbers.normal(size=(20, 8)), jnp.float32)
    labels = jnp.asarray(numbers.integers(0, 3, size=20))
    model = Classifier()
    params = model.init(jax.random.key(0), x)["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-2))
    for begin in range(0, 20, 8):
        state, loss = train_step(state, x[begin : begin + 8], labels[begin : begin + 8])
        print(f"{begin}: {loss:.3f}")


main()
