# about: nothing; flax nnx
# allow: page_faults
# needs: flax, optax
"""Training and inference with flax nnx, its state passed through plain jax.jit."""

import functools

import jax
import jax.numpy as jnp
import optax
from flax import nnx

train = functools.partial(jax.jit, donate_argnums=0)


class Regressor(nnx.Module):
    def __init__(self, rngs):
        self.inner = nnx.Linear(128, 512, rngs=rngs)
        self.norm = nnx.LayerNorm(512, rngs=rngs)
        self.outer = nnx.Linear(512, 1, rngs=rngs)

    def __call__(self, x):
        return self.outer(nnx.gelu(self.norm(self.inner(x))))[:, 0]


REGRESSOR = nnx.graphdef(Regressor(nnx.Rngs(0)))


@train
def regress(state, x, y):
    def loss(state):
        return jnp.mean((nnx.merge(REGRESSOR, state)(x) - y) ** 2)

    return jax.tree.map(lambda p, g: p - 0.01 * g, state, jax.grad(loss)(state))


def regress_inputs(random):
    x = random.standard_normal((1024, 128), dtype="float32")
    return nnx.state(Regressor(nnx.Rngs(0))), x, x[:, 0] * x[:, 1]


class Critic(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([nnx.Linear(256, 256, rngs=rngs) for _ in range(3)])

    def __call__(self, x):
        for layer in self.layers:
            x = nnx.relu(layer(x)) + x
        return x.mean(-1)


CRITIC, TX = nnx.graphdef(Critic(nnx.Rngs(0))), optax.adam(3e-4)


@train
def temporal_difference(carry, old, new, reward):
    params, slow, opt_state = carry

    def loss(params):
        target = reward + 0.99 * nnx.merge(CRITIC, slow)(new)
        return jnp.mean((nnx.merge(CRITIC, params)(old) - jax.lax.stop_gradient(target)) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    updates, opt_state = TX.update(grads, opt_state)
    params = optax.apply_updates(params, updates)
    return (params, optax.incremental_update(params, slow, 0.005), opt_state), value


def temporal_difference_inputs(random):
    params = nnx.state(Critic(nnx.Rngs(0)))
    states = random.standard_normal((2, 512, 256), dtype="float32")
    slow = jax.tree.map(jnp.copy, params)
    return (params, slow, TX.init(params)), *states, random.random(512, dtype="float32")


class Denoiser(nnx.Module):
    def __init__(self, rngs):
        self.down = nnx.Conv(16, 32, (3, 3), rngs=rngs)
        self.up = nnx.Conv(32, 16, (3, 3), rngs=rngs)

    def __call__(self, x):
        return x - self.up(nnx.silu(self.down(x)))


@nnx.jit
def denoise(model, images):
    return model(model(images))


def denoise_inputs(random):
    return Denoiser(nnx.Rngs(1)), random.standard_normal((16, 32, 32, 16), dtype="float32")


@jax.jit
def scores(state, x):
    """Per-example gradients, for the norm of each."""

    def each(x):
        grads = jax.grad(lambda state: jnp.sum(nnx.merge(CRITIC, state)(x[None])))(state)
        return jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))

    return jax.vmap(each)(x)


def scores_inputs(random):
    return nnx.state(Critic(nnx.Rngs(2))), random.standard_normal((64, 256), dtype="float32")


@nnx.jit
def fine_tune(model, optimiser, x, y):
    loss, grads = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
    optimiser.update(model, grads)
    return loss


def fine_tune_inputs(random):
    model = Regressor(nnx.Rngs(3))
    x = random.standard_normal((512, 128), dtype="float32")
    return model, nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param), x, x.sum(1)
