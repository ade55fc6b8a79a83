# about: a factory makes a new jitted closure over each strength
# verdict: compile-bound
# expect: closure_varies
# forbid: op_by_op_loop, many_tiny_jits, varying_shapes, host_sync, data_waits, host_work, static_argument_varies
# lines: closure_varies@cause
# mended: sweep_regularisation_argument
import sys

import jax
import jax.numpy as jnp


def make_update(strength, depth=5):
    @jax.jit
    def update(w, x):  # <- cause
        def loss(w):
            hidden = x
            for _ in range(depth):
                hidden = jnp.tanh(hidden @ w)
            return jnp.mean((hidden - x) ** 2) + strength * jnp.sum(jnp.abs(w))

        return w - 0.1 * jax.grad(loss)(w)

    return update


def train(x, strength, steps=5):
    update = make_update(strength)  # <- cause
    w = jnp.eye(32)
    for _ in range(steps):
        w = update(w, x)  # <- cause
    return w


x = jnp.linspace(-1.0, 1.0, 64 * 32).reshape(64, 32)
for number in range(int(14 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    w = train(x, 1e-4 * number)  # <- cause
print(w[0, :2])
