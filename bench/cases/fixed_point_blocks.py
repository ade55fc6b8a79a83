# about: the error is looked at after each hundred passes inside the jitted function
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


@jax.jit
def iterate(x, shift):
    def one(x, _):
        new = jnp.cos(x) * 0.5 + shift
        return new, jnp.max(jnp.abs(new - x))

    x, errors = jax.lax.scan(one, x, length=200)
    return x, errors[-1]


def solve(x, shift, most):
    count = 0
    while True:
        x, error = iterate(x, shift)
        count += 200
        if error < -1.0 or count >= most:
            return x, count


x, shift = jnp.linspace(0.0, 1.0, 200_000), jnp.linspace(0.0, 0.1, 200_000)
print(solve(x, shift, int(4000 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))[1])
