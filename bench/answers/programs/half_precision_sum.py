# about: the faster-looking side adds up in bfloat16, and gives other numbers
# how: compare @:exact @:narrow --arg f32[4096,512] --launches 3 --budget 12
# expect: results_differ
# allow: slower, wrong_result, dtype_convert, layout_copy, cumulative_sum
# set: holdout
import jax.numpy as jnp


def exact(x):
    return jnp.mean(x * x, axis=0) + jnp.cumsum(x, axis=0)[-1]


def narrow(x):
    y = x.astype(jnp.bfloat16)
    return (jnp.mean(y * y, axis=0) + jnp.cumsum(y, axis=0)[-1]).astype(jnp.float32)
