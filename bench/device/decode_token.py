# about: the key and value caches of a decoder are not donated, so each token copies them whole
# cause: not donated
# expect: lost_donation
# run: decode
# mended: decode_donated
# trial: donate
# targets: h100, tpu-v5e
import functools

import jax
import jax.numpy as jnp

HEADS, LENGTH, SIZE = 8, 8192, 64


def attend(query, key, value, keys, values, position):
    keys = jax.lax.dynamic_update_slice(keys, key[:, None], (0, position, 0))  # <- cause
    values = jax.lax.dynamic_update_slice(values, value[:, None], (0, position, 0))  # <- cause
    scores = jnp.einsum("hd,htd->ht", query, keys) / 8
    shares = jax.nn.softmax(jnp.where(jnp.arange(LENGTH) <= position, scores, -1e9))
    return jnp.einsum("ht,htd->hd", shares, values), keys, values


@jax.jit  # <- cause
def decode(query, key, value, keys, values, position):  # <- cause
    return attend(query, key, value, keys, values, position)  # <- cause


def decode_inputs(random):
    token = [random.standard_normal((HEADS, SIZE), dtype="float32") for _ in range(3)]
    caches = [random.standard_normal((HEADS, LENGTH, SIZE), dtype="float32") for _ in range(2)]
    return *token, *caches, jnp.int32(900)


@functools.partial(jax.jit, donate_argnums=(3, 4))
def decode_donated(query, key, value, keys, values, position):
    return attend(query, key, value, keys, values, position)


decode_donated_inputs = decode_inputs
