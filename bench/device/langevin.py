# about: each step's key is made on the host, by operations of their own
# cause: random bits
# expect: op_by_op_loop | host_keys
import sys
import time

import jax
import jax.numpy as jnp


@jax.jit
def move(x, key):
    return x - 0.01 * jnp.sin(x) + 0.1 * jax.random.normal(key, x.shape)


@jax.jit
def move_at(x, key, n):
    return move(x, jax.random.fold_in(key, n))


def split_keys(x, key):
    for _ in range(6000):
        key, sub = jax.random.split(key)  # <- cause
        x = move(x, sub)
    return x


def fold_keys(x, key):
    for n in range(6000):
        x = move_at(x, key, n)
    return x


walk = fold_keys if "mended" in sys.argv else split_keys
began = time.perf_counter()
x = walk(jnp.zeros(64), jax.random.key(0))
print(float(x.mean()))
print(f"{(time.perf_counter() - began) / 6000 * 1e3:.4f} ms a step")
