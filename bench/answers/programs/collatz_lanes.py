# about: a while_loop whose body is a handful of scalar operations, run a hundred thousand times
# how: run @:longest --arg i32[] --budget 1
# expect: small_loop_body
# allow: tiny_kernels
import jax
import jax.numpy as jnp


def longest(start):
    def body(state):
        n, steps, total = state
        n = jnp.where(n % 2 == 0, n // 2, 3 * n + 1)
        return n, steps + 1, total + n % 7

    return jax.lax.while_loop(lambda state: state[1] < 100_000, body, (start + 27, 0, 0))
