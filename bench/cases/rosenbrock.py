# about: jax.grad(f)(x) is called without jit in each pass of a loop in a nested function
# verdict: dispatch-bound | host-bound
# expect: op_by_op_loop
# forbid: host_sync, data_waits, dispatch_bound, arrays_grow, host_work
# lines: op_by_op_loop@cause
# mended: newton_roots_once
import sys

import jax
import jax.numpy as jnp


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)  # <- cause


def minimise(function, start, rate=1e-4):
    def descend(steps):
        x = start
        for _ in range(steps):
            x = x - rate * jax.grad(function)(x)  # <- cause
        return x

    return descend


descend = minimise(rosenbrock, jnp.linspace(-1.0, 1.0, 10))
print(descend(int(300 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
