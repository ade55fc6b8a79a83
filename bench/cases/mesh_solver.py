# about: jax.clear_caches() after each refinement, and everything is compiled again
# verdict: compile-bound
# expect: caches_cleared
# forbid: op_by_op_loop, many_tiny_jits, varying_shapes, host_sync, data_waits, host_work, recompile_in_loop
# lines: caches_cleared@cause
# mended: mesh_solver_kept
import sys

import jax
import jax.numpy as jnp


@jax.jit
def smooth(u, f):
    for _ in range(8):
        u = 0.25 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - f)
    return u - u.mean()


@jax.jit
def residual(u, f):
    laplacian = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
    return jnp.linalg.norm(laplacian - f)


def refine(u, f, rounds):
    for _ in range(rounds):
        for _ in range(5):
            u = smooth(u, f)
        error = residual(u, f)
        jax.clear_caches()  # <- cause
    return u, error


rounds = int(4 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
f = jnp.sin(jnp.linspace(0, 20, 64 * 64)).reshape(64, 64)
print(refine(jnp.zeros((64, 64)), f, rounds)[1])
