# about: a jitted function of microseconds is called for each pair in two nested loops
# verdict: dispatch-bound
# expect: dispatch_bound
# forbid: op_by_op_loop, host_sync, many_tiny_jits, data_waits, host_work, repeated_fetch
# lines: dispatch_bound@cause
# mended: pairwise_alignment_vmap
import sys

import jax
import jax.numpy as jnp


@jax.jit
def similarity(a, b):
    return jnp.dot(a, b) / jnp.sqrt(jnp.dot(a, a) * jnp.dot(b, b))


def best_matches(rows, repeats):
    best = rows[0][0]
    for _ in range(repeats):
        for i, a in enumerate(rows):  # <- cause
            for j, b in enumerate(rows):  # <- cause
                if i != j:
                    best = similarity(a, b)  # <- cause
    return best


repeats = int(48 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
rows = list(jnp.sin(jnp.arange(64.0 * 32).reshape(64, 32)))
print(best_matches(rows, repeats))
