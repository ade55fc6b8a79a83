# about: three products, each of whose operands has to be transposed first
# how: run @:project --arg f32[32,64,48,96] --budget 1
# expect: layout_copy
import jax.numpy as jnp


def project(x):
    a = jnp.transpose(x, (3, 1, 0, 2))
    b = jnp.cumsum(a, axis=0)
    c = jnp.transpose(b, (2, 0, 3, 1))
    return jnp.cumsum(c, axis=1)
