# about: everything is sorted with its places, and only the largest value is used
# how: run @:winner --arg f32[256,16384] --budget 1
# expect: unused_output
import jax.numpy as jnp


def winner(scores):
    order = jnp.argsort(scores, axis=1)
    return jnp.take_along_axis(scores, order, axis=1)[:, -3:].sum(1)
