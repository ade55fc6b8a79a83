# about: a large array is kept in bfloat16 and cast to float32 before and after each library routine
# how: run @:rank --arg bf16[1024,8192] --budget 1
# expect: dtype-convert
# allow: layout-copy
import jax.numpy as jnp


def rank(x):
    ordered = jnp.sort(x.astype(jnp.float32), axis=1).astype(jnp.bfloat16)
    again = jnp.sort(ordered.T.astype(jnp.float32), axis=1)
    return again.astype(jnp.bfloat16)
