# about: nothing; optax
# needs: optax
from functools import partial

import jax
import jax.numpy as jnp
import optax


def logistic(w, x, y):
    return jnp.mean(jax.nn.softplus(-y * (x @ w))) + 1e-3 * jnp.sum(w**2)


LBFGS = optax.lbfgs(memory_size=5)


@jax.jit
def quasi_newton(w, state, x, y):
    value, grad = optax.value_and_grad_from_state(logistic)(w, x, y, state=state)
    updates, state = LBFGS.update(grad, state, w, value=value, grad=grad, value_fn=partial(logistic, x=x, y=y))
    return optax.apply_updates(w, updates), state


def quasi_newton_inputs(random):
    x = random.standard_normal((20_000, 64), dtype="float32")
    w = jnp.zeros(64)
    return w, LBFGS.init(w), x, jnp.sign(x[:, 0] + 0.1)


CLIPPED = optax.chain(
    optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 1000))
)


def mixer(params, x):
    for w, v in params:
        x = x + jax.nn.gelu(x @ w) @ v
    return x


@partial(jax.jit, donate_argnums=(0, 1))
def clipped(params, state, x):
    grads = jax.grad(lambda p: jnp.mean((mixer(p, x) - jnp.roll(x, 1, -1)) ** 2))(params)
    updates, state = CLIPPED.update(grads, state, params)
    return optax.apply_updates(params, updates), state


def clipped_inputs(random):
    shapes = [(256, 512), (512, 256)]
    params = [tuple(0.05 * random.standard_normal(s, dtype="float32") for s in shapes) for _ in range(3)]
    return params, CLIPPED.init(params), random.standard_normal((512, 256), dtype="float32")


EVERY = optax.MultiSteps(optax.sgd(0.1), 4)


@partial(jax.jit, donate_argnums=(0, 1))
def accumulated(w, state, x, y):
    grads = jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
    updates, state = EVERY.update(grads, state, w)
    return optax.apply_updates(w, updates), state


def accumulated_inputs(random):
    w = random.standard_normal((256, 128), dtype="float32") / 16
    x = random.standard_normal((2048, 256), dtype="float32")
    return w, EVERY.init(w), x, x[:, :128]


ADAM = optax.adam(1e-2)


@jax.jit
def epoch(w, state, batches):
    """A whole epoch in one scan."""

    def step(carry, batch):
        w, state = carry
        grads = jax.grad(lambda w: jnp.mean((jax.nn.relu(batch @ w) @ w.T - batch) ** 2))(w)
        updates, state = ADAM.update(grads, state)
        return (optax.apply_updates(w, updates), state), None

    return jax.lax.scan(step, (w, state), batches)[0]


def epoch_inputs(random):
    w = random.standard_normal((256, 128), dtype="float32") / 16
    return w, ADAM.init(w), random.standard_normal((30, 256, 256), dtype="float32")


@jax.jit
def contrastive(params, left, right):
    def loss(params):
        a, b = (x @ params / jnp.linalg.norm(x @ params, axis=1, keepdims=True) for x in (left, right))
        return optax.softmax_cross_entropy_with_integer_labels(10 * a @ b.T, jnp.arange(len(a))).mean()

    return jax.grad(loss)(params)


def contrastive_inputs(random):
    views = random.standard_normal((2, 256, 512), dtype="float32")
    return random.standard_normal((512, 128), dtype="float32") / 20, *views
