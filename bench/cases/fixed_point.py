# about: the condition needs the error of each pass on the host; comparing it and the calls take as long as waiting
# verdict: host-bound | device-bound | dispatch-bound
# expect: host_sync | dispatch_bound
# forbid: op_by_op_loop, many_tiny_jits, data_waits, repeated_fetch, host_work
# lines: host_sync@cause, dispatch_bound@call
# mended: fixed_point_blocks
import sys

import jax
import jax.numpy as jnp


@jax.jit
def iterate(x, shift):
    new = jnp.cos(x) * 0.5 + shift
    return new, jnp.max(jnp.abs(new - x))


def solve(x, shift, most):
    count = 0
    while True:
        x, error = iterate(x, shift)  # <- call
        count += 1
        if error < -1.0 or count == most:  # <- cause
            return x, count


x, shift = jnp.linspace(0.0, 1.0, 20_000), jnp.linspace(0.0, 0.1, 20_000)
print(solve(x, shift, int(9000 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))[1])
