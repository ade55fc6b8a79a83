# about: a lambda is jitted inside the loop, so that every pass compiles
# verdict: compile-bound
# expect: recompile_in_loop | closure_varies
# forbid: op_by_op_loop, many_tiny_jits, varying_shapes, host_work, host_sync, dispatch_bound
# lines: recompile_in_loop@cause, closure_varies@cause
# mended: newton_roots_once
import sys

import jax
import jax.numpy as jnp


def solve(coefficients, x):
    for c in coefficients:
        f = jax.jit(lambda x: jnp.sum(jnp.sin(x) ** 2 + jnp.cos(c * x) * x + jnp.exp(-(x**2)) - c))  # <- cause
        x = x - 0.1 * jax.jit(jax.grad(f))(x)  # <- cause
    return x


count = int(30 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
print(solve([0.1 * k for k in range(count)], jnp.linspace(0.0, 1.0, 50))[:3])
