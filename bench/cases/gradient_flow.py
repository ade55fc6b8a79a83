# about: the loss of every step is printed, and the steps are small
# verdict: host-bound | device-bound | dispatch-bound
# expect: host_sync
# forbid: op_by_op_loop, many_tiny_jits, data_waits, repeated_fetch, arrays_grow
# lines: host_sync@cause
# mended: gradient_flow_quiet
import sys

import jax
import jax.numpy as jnp


@jax.jit
def flow(x):
    value, gradient = jax.value_and_grad(lambda x: jnp.sum(jnp.cos(x) + 0.1 * x**2))(x)
    return x - 0.1 * gradient, value


def descend(x, steps):
    for step in range(steps):
        x, value = flow(x)
        print(f"step {step:5d}  value {value:.6f}")  # <- cause
    return x


descend(jnp.linspace(-3.0, 3.0, 20_000), int(4000 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))
