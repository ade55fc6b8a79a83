# about: the progress bar shows loss.item() of every small step
# how: script
# expect: host_sync
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.training.train_state import TrainState
from tqdm import tqdm


class Classifier(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(128)(x))
        return nn.Dense(10)(x)


@jax.jit
def train_step(state, images, labels):
    def loss_fn(params):
        logits = state.apply_fn(params, images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


rng = np.random.default_rng(0)
images = jnp.asarray(rng.random((64, 196), np.float32))
labels = jnp.asarray(rng.integers(0, 10, 64))
model = Classifier()
state = TrainState.create(
    apply_fn=model.apply, params=jax.jit(model.init)(jax.random.key(0), images), tx=optax.adam(1e-3)
)
for epoch in range(3):
    bar = tqdm(range(1500), disable=True)
    for _ in bar:
        state, loss = train_step(state, images, labels)
        bar.set_postfix_str(f"{loss.item():.4f}")
