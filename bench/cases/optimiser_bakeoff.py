# about: four rules of optimisation, each jitted by one factory: four programs, whoever makes them
# verdict: compile-bound | -
# forbid: closure_varies, recompile_in_loop, static_argument_varies, varying_shapes, op_by_op_loop, data_waits
import sys

import jax
import jax.numpy as jnp


def plain(g, m):
    return 0.1 * g, m


def momentum(g, m):
    m = 0.9 * m + g
    return 0.1 * m, m


def signed(g, m):
    m = 0.9 * m + 0.1 * g
    return 0.01 * jnp.sign(m), m


def scaled(g, m):
    m = 0.99 * m + 0.01 * g**2
    return 0.1 * g / (jnp.sqrt(m) + 1e-6), m


def make_step(rule):
    @jax.jit
    def step(w, m, x):
        def loss(w):
            hidden = x
            for _ in range(12):
                hidden = jnp.tanh(hidden @ w)
            return jnp.mean((hidden - x) ** 2)

        update, m = rule(jax.grad(loss)(w), m)
        return w - update, m

    return step


x = jnp.linspace(-1.0, 1.0, 64 * 32).reshape(64, 32)
for rule in (plain, momentum, signed, scaled):
    step = make_step(rule)
    w, m = jnp.eye(32), jnp.zeros((32, 32))
    for _ in range(int(100 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
        w, m = step(w, m, x)
    print(rule.__name__, w[0, :2])
