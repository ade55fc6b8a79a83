# about: weights are stored in bfloat16, and each call casts all of them to float32 for one product with a vector
# how: run @:logits --arg bf16[6000,4096] --arg f32[4096] --budget 1
# expect: dtype_convert | upcast_product
# allow: layout_copy
import jax.numpy as jnp


def logits(table, state):
    wide = table.astype(jnp.float32)
    return wide @ jnp.tanh(state)
