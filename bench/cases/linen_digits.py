# about: nothing; flax linen with a TrainState, logging every fiftieth step
# verdict: device-bound
# forbid: *
# needs: flax, optax
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(512)(x))
        x = nn.relu(nn.Dense(512)(x))
        return nn.Dense(10)(x)


@jax.jit
def train_step(state, images, labels):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def main():
    steps = int(90 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
    images = jax.random.normal(jax.random.key(0), (512, 784))
    labels = jnp.arange(512) % 10
    net = Net()
    params = jax.jit(net.init)(jax.random.key(1), images)["params"]
    state = train_state.TrainState.create(apply_fn=net.apply, params=params, tx=optax.adam(1e-3))
    for step in range(steps):
        state, loss = train_step(state, images, labels)
        if step % 50 == 0:
            print(step, float(loss))


if __name__ == "__main__":
    main()
