# about: nothing; equinox
# allow: page_faults
# needs: equinox, optax
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import optax


def loss(model, x, y):
    return jnp.mean((jax.vmap(model)(x)[:, 0] - y) ** 2)


TX = optax.adam(1e-3)
PARAMS, STATIC = eqx.partition(eqx.nn.MLP(64, 1, 512, 3, key=jax.random.key(0)), eqx.is_array)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def perceptron(params, opt_state, x, y):
    value, grads = jax.value_and_grad(lambda p: loss(eqx.combine(p, STATIC), x, y))(params)
    updates, opt_state = TX.update(grads, opt_state)
    return eqx.apply_updates(params, updates), opt_state, value


def perceptron_inputs(random):
    x = random.standard_normal((512, 64), dtype="float32")
    return jax.tree.map(jnp.copy, PARAMS), TX.init(PARAMS), x, x[:, 0]


class Gated(eqx.Module):
    cell: eqx.nn.GRUCell
    out: eqx.nn.Linear

    def __init__(self, key):
        one, two = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(32, 192, key=one)
        self.out = eqx.nn.Linear(192, 1, key=two)

    def __call__(self, series):
        hidden, _ = jax.lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(192), series)
        return self.out(hidden)


@eqx.filter_jit
def forecast(model, series):
    return jax.vmap(model)(series)


def forecast_inputs(random):
    return Gated(jax.random.key(1)), random.standard_normal((128, 40, 32), dtype="float32")


@eqx.filter_jit
def forecast_gradient(model, series, y):
    return eqx.filter_grad(loss)(model, series, y)


def forecast_gradient_inputs(random):
    model, series = forecast_inputs(random)
    return model, series, series[:, -1, 0]


FIELD, FIELD_STATIC = eqx.partition(eqx.nn.MLP(16, 16, 128, 2, jnp.tanh, key=jax.random.key(2)), eqx.is_array)


@jax.jit
def neural_ode(field, y):
    """Runge-Kutta of order 4, forty steps."""
    f = jax.vmap(eqx.combine(field, FIELD_STATIC))

    def step(y, _):
        a = f(y)
        b = f(y + 0.05 * a)
        c = f(y + 0.05 * b)
        d = f(y + 0.1 * c)
        return y + 0.1 * (a + 2 * b + 2 * c + d) / 6, None

    return jax.lax.scan(step, y, length=40)[0]


def neural_ode_inputs(random):
    return FIELD, random.standard_normal((256, 16), dtype="float32")


@eqx.filter_vmap
def network(key):
    return eqx.nn.MLP(32, 8, 128, 2, key=key)


MEMBERS, MEMBERS_STATIC = eqx.partition(network(jax.random.split(jax.random.key(3), 8)), eqx.is_array)


@jax.jit
def ensemble(members, x):
    return jax.vmap(lambda each: jax.vmap(eqx.combine(each, MEMBERS_STATIC))(x))(members).std(0)


def ensemble_inputs(random):
    return MEMBERS, random.standard_normal((256, 32), dtype="float32")


LAYER, LAYER_STATIC = eqx.partition(eqx.nn.MultiheadAttention(4, 128, key=jax.random.key(4)), eqx.is_array)


@jax.jit
def attention(layer, x):
    layer = eqx.combine(layer, LAYER_STATIC)
    return jax.vmap(lambda x: layer(x, x, x))(x)


def attention_inputs(random):
    return LAYER, random.standard_normal((32, 24, 128), dtype="float32")
