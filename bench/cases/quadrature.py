# about: Python computes a large table of nodes inside the traced function, for each of a few shapes
# verdict: compile-bound | -
# expect: slow_tracing
# forbid: op_by_op_loop, host_sync, data_waits, many_tiny_jits, dispatch_bound, host_work
# lines: slow_tracing@cause
# mended: quadrature_before
import math
import sys

import jax
import jax.numpy as jnp
import numpy as np


def nodes(order, sweeps):
    found = []
    for k in range(order):
        x = math.cos(math.pi * (k + 0.75) / (order + 0.5))
        for _ in range(sweeps):  # <- cause
            p, q = 1.0, 0.0
            for n in range(order):  # <- cause
                p, q = ((2 * n + 1) * x * p - n * q) / (n + 1), p  # <- cause
            x -= p * (x * x - 1) / (order * (x * p - q) + 1e-12)
        found.append(x)
    return np.array(found, np.float32)


@jax.jit
def integrate(a):
    points = nodes(100, sweeps)  # <- cause
    return jnp.mean(jnp.exp(-a * points**2) * jnp.cos(points))


sweeps = int(1000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
for shape in (1.0, 2.0):
    print(integrate(jnp.float32(shape)))
print(integrate(jnp.ones(100)))
