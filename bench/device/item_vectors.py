# about: the backward pass of a lookup of 256 rows fills a gradient of the whole table
# cause: backward
# expect: costly_backward
# run: update
# mended: update_rows
# targets: h100, tpu-v5e
import functools

import jax
import jax.numpy as jnp


def loss(rows, users):
    return jnp.mean(jax.nn.softplus(-jnp.sum(rows * users, -1)))


@functools.partial(jax.jit, donate_argnums=0)
def update(table, items, users):
    grads = jax.grad(lambda table: loss(table[items], users))(table)  # <- cause
    return table - 0.1 * grads  # <- cause


def update_inputs(random):
    table = random.standard_normal((300_000, 64), dtype="float32")
    return table, random.integers(0, 300_000, 256, dtype="int32"), random.standard_normal((256, 64), dtype="float32")


@functools.partial(jax.jit, donate_argnums=0)
def update_rows(table, items, users):
    grads = jax.grad(loss)(table[items], users)
    return table.at[items].add(-0.1 * grads)


update_rows_inputs = update_inputs
