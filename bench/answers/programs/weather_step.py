# about: the state and the optimizer's moments are replaced by each step and not donated
# how: run @:step --budget 1
# expect: lost_donation
import jax
import jax.numpy as jnp


def step(params, m, v, x):
    def loss(p):
        return jnp.mean(jnp.tanh(x @ p) ** 2)

    g = jax.grad(loss)(params)
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return params - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def step_inputs():
    size = (1792, 1792)
    return jnp.ones(size), jnp.zeros(size), jnp.zeros(size), jnp.ones((64, 1792))
