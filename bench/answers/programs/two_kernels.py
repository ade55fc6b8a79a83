# about: the second version computes the same with a scan over rows, and is much slower
# how: compare @:whole @:by_rows --arg f32[512,512] --launches 3 --budget 12
# expect: slower
# allow: small_loop_body, tiny_kernels
import jax
import jax.numpy as jnp


def whole(x):
    return jnp.tanh(x) @ x.T


def by_rows(x):
    return jax.lax.map(lambda row: jnp.tanh(row) @ x.T, x)
