# about: nothing; flax linen
# needs: flax, optax
"""Training and inference with flax linen."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

train = functools.partial(jax.jit, donate_argnums=0)


def begin(net, optimiser, *inputs):
    variables = net.init(jax.random.key(0), *inputs)
    return TrainState.create(apply_fn=net.apply, params=variables["params"], tx=optimiser)


class Digits(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (512, 512):
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(10)(x)


@train
def digits(state, images, labels):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def digits_inputs(random):
    images = random.random((512, 784), dtype="float32")
    return begin(Digits(), optax.adamw(1e-3), images), images, random.integers(0, 10, 512, dtype="int32")


class Photos(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(32, (3, 3), strides=2)(x))
        x = nn.relu(nn.Conv(64, (3, 3), strides=2)(x))
        return nn.Dense(10)(x.mean((1, 2)))


@train
def photos(state, images, labels):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    grads = jax.grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads)


def photos_inputs(random):
    images = random.random((64, 32, 32, 16), dtype="float32")
    return begin(Photos(), optax.sgd(0.1, momentum=0.9), images), images, random.integers(0, 10, 64, dtype="int32")


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = x + nn.SelfAttention(8)(nn.LayerNorm()(x))
        y = nn.gelu(nn.Dense(1024)(nn.LayerNorm()(x)))
        return x + nn.Dense(256)(y)


@jax.jit
def encoder(params, x):
    return Block().apply(params, Block().apply(params, x)).mean(1)


def encoder_inputs(random):
    x = random.standard_normal((16, 32, 256), dtype="float32")
    return Block().init(jax.random.key(1), x), x


class Speech(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.RNN(nn.LSTMCell(128))(x))[:, -1, 0]


@train
def speech(state, x, y):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((state.apply_fn({"params": p}, x) - y) ** 2))(state.params)
    return state.apply_gradients(grads=grads), loss


def speech_inputs(random):
    x = random.standard_normal((64, 50, 64), dtype="float32")
    return begin(Speech(), optax.adam(1e-3), x), x, x.sum((1, 2))


class Compressor(nn.Module):
    @nn.compact
    def __call__(self, x, key):
        h = nn.silu(nn.Dense(400)(x))
        mean, spread = jnp.split(nn.Dense(32)(h), 2, -1)
        z = mean + jnp.exp(spread) * jax.random.normal(key, mean.shape)
        return nn.Dense(784)(nn.silu(nn.Dense(400)(z))), mean, spread


@train
def compressor(state, x, key):
    def negative_elbo(params):
        logits, mean, spread = state.apply_fn({"params": params}, x, key)
        divergence = 0.5 * jnp.sum(mean**2 + jnp.exp(2 * spread) - 2 * spread - 1, -1)
        return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, x).sum(-1) + divergence)

    loss, grads = jax.value_and_grad(negative_elbo)(state.params)
    return state.apply_gradients(grads=grads), loss


def compressor_inputs(random):
    x, key = random.random((256, 784), dtype="float32"), jax.random.key(2)
    return begin(Compressor(), optax.adam(1e-3), x, key), x, key


class Deep(nn.Module):
    @nn.compact
    def __call__(self, x):
        layer = nn.scan(Layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=6)
        return layer()(x, None)[0]


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return x + nn.Dense(256)(nn.tanh(nn.Dense(256)(x))), None


@jax.jit
def deep(params, x):
    return Deep().apply(params, x)


def deep_inputs(random):
    x = random.standard_normal((512, 256), dtype="float32")
    return Deep().init(jax.random.key(3), x), x
