# about: nothing: two ways of writing the same sum
# how: compare @:one @:other --arg f32[1000000] --launches 3 --budget 12
# expect: -
import jax.numpy as jnp


def one(x):
    return (x * x).sum()


def other(x):
    return jnp.sum(jnp.square(x))
