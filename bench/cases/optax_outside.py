# about: the gradient is jitted, yet optax's update and apply_updates run operation by operation in the loop
# verdict: dispatch-bound | host-bound
# expect: op_by_op_loop
# forbid: host_sync, data_waits, dispatch_bound, host_work
# lines: op_by_op_loop@cause
# needs: optax
# mended: optax_inside
import sys

import jax
import jax.numpy as jnp
import optax


def loss(params, x):
    for w in params:
        x = jnp.tanh(x @ w)
    return jnp.mean(x**2)


value_and_grad = jax.jit(jax.value_and_grad(loss))


def fit(params, x, steps):
    optimiser = optax.adam(1e-3)
    state = optimiser.init(params)
    for _ in range(steps):
        value, grads = value_and_grad(params, x)
        updates, state = optimiser.update(grads, state, params)  # <- cause
        params = optax.apply_updates(params, updates)  # <- cause
    return value


steps = int(300 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
params = [0.1 * jnp.eye(32) for _ in range(6)]
print(fit(params, jnp.ones((8, 32)), steps))
