# about: nothing: a jitted flax step with enough work, batches on the device, a loss now and then
# how: script
# expect: -
# allow: cache_off
import jax
import optax
from flax import linen as nn


class Cnn(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(16, (3, 3), strides=2)(x))
        x = nn.relu(nn.Conv(32, (3, 3), strides=2)(x))
        return nn.Dense(10)(x.reshape(x.shape[0], -1))


model, opt = Cnn(), optax.adam(1e-3)
key = jax.random.key(0)
images = jax.random.normal(key, (8, 64, 28, 28, 1))
labels = jax.random.randint(key, (8, 64), 0, 10)
params = jax.jit(model.init)(key, images[0])
state = jax.jit(opt.init)(params)


@jax.jit
def step(params, state, images, labels):
    def loss_fn(p):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(p, images), labels).mean()

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, state = opt.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


batches = [(images[n], labels[n]) for n in range(8)]
for n in range(400):
    params, state, loss = step(params, state, *batches[n % 8])
    if n % 50 == 0:
        print(n, float(loss))
