# about: gradient, update and apply_updates in one jitted step, larger layers
# verdict: device-bound
# forbid: *
# needs: optax
import sys

import jax
import jax.numpy as jnp
import optax

optimiser = optax.adam(1e-3)


def loss(params, x):
    for w in params:
        x = jnp.tanh(x @ w)
    return jnp.mean(x**2)


@jax.jit
def update(params, state, x):
    value, grads = jax.value_and_grad(loss)(params, x)
    updates, state = optimiser.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


def fit(params, x, steps):
    state = optimiser.init(params)
    for _ in range(steps):
        params, state, value = update(params, state, x)
    return value


steps = int(60 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
params = [0.1 * jnp.eye(512) for _ in range(3)]
print(fit(params, jnp.ones((512, 512)), steps))
